import Foundation
import Synchronization

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// An HTTP server on loopback with a thread for each connection. It can send any bytes as an answer.
final class LoopbackServer: Sendable {
    struct Request: Sendable {
        var method = ""
        /// As it was sent.
        var target = ""
        /// Names in lowercase.
        var headers: [(name: String, value: String)] = []
        var body: [UInt8] = []

        var path: String { String(target.prefix { $0 != "?" }) }
        var query: String { String(target.dropFirst(path.count).dropFirst()) }
        subscript(name: String) -> String? { headers.first { $0.name == name }?.value }
    }

    struct Answer: Sendable {
        var status = 200
        var headers: [(name: String, value: String)] = []
        var body: [UInt8] = []
        /// Sent in place of everything above.
        var raw: [UInt8]?
        /// Whether the connection ends behind the answer.
        var closes = false

        init(_ status: Int = 200, _ headers: [(name: String, value: String)] = [], _ body: [UInt8] = []) {
            (self.status, self.headers, self.body) = (status, headers, body)
        }

        init(_ status: Int = 200, _ headers: [(name: String, value: String)] = [], text: String) {
            self.init(status, headers, Array(text.utf8))
        }

        /// Ends the connection behind some bytes, which may be none.
        static func raw(_ bytes: [UInt8]) -> Answer {
            var answer = Answer()
            (answer.raw, answer.closes) = (bytes, true)
            return answer
        }

        func bytes(toHead: Bool) -> [UInt8] {
            if let raw { return raw }
            var head = "HTTP/1.1 \(status) Status\r\n"
            if !headers.contains(where: { $0.name.lowercased() == "content-length" }), status != 304, status != 204 {
                head += "Content-Length: \(body.count)\r\n"
            }
            for field in headers { head += "\(field.name): \(field.value)\r\n" }
            return Array((head + "\r\n").utf8) + (toHead ? [] : body)
        }
    }

    private struct State {
        var descriptors: Set<Int32> = []
        var isStopped = false
    }

    struct Failure: Error {}

    let port: Int
    private let listener: Int32
    private let state = Mutex(State())
    private let answer: @Sendable (Request) -> Answer

    init(_ answer: @escaping @Sendable (Request) -> Answer) throws {
        self.answer = answer
        #if canImport(Darwin)
        let stream = SOCK_STREAM
        #else
        let stream = Int32(SOCK_STREAM.rawValue)
        #endif
        let listener = socket(AF_INET, stream, 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isBound = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
                bind(listener, pointer, size) == 0 && listen(listener, 128) == 0
                    && getsockname(listener, pointer, &size) == 0
            }
        }
        guard listener >= 0, isBound else { throw Failure() }
        self.listener = listener
        port = Int(UInt16(bigEndian: address.sin_port))
        Thread.detachNewThread { [self] in accept() }
    }

    /// Ends the server and its connections. The server lives until then.
    func stop() {
        let descriptors = state.withLock { state in
            state.isStopped = true
            return state.descriptors
        }
        for descriptor in descriptors { shutdown(descriptor, Int32(SHUT_RDWR)) }
        shutdown(listener, Int32(SHUT_RDWR))
    }

    private func accept() {
        while true {
            let descriptor = acceptConnection(listener)
            if descriptor < 0, errno == EINTR { continue }
            let isOpen = state.withLock { state in
                guard descriptor >= 0, !state.isStopped else { return false }
                state.descriptors.insert(descriptor)
                return true
            }
            guard isOpen else {
                if descriptor >= 0 { close(descriptor) }
                close(listener)
                return
            }
            Thread.detachNewThread { [self] in
                serve(descriptor)
                _ = state.withLock { $0.descriptors.remove(descriptor) }
                close(descriptor)
            }
        }
    }

    private func serve(_ descriptor: Int32) {
        var received: [UInt8] = []
        while let request = Self.request(descriptor, &received) {
            let answer = answer(request)
            guard Self.send(answer.bytes(toHead: request.method == "HEAD"), descriptor), !answer.closes else { return }
        }
    }

    private static func request(_ descriptor: Int32, _ received: inout [UInt8]) -> Request? {
        let end = Array("\r\n\r\n".utf8)
        var head: Range<Int>?
        while head == nil {
            head = received.firstRange(of: end)
            if head == nil, !receive(descriptor, &received) { return nil }
        }
        guard let head else { return nil }
        let lines = String(decoding: received[..<head.lowerBound], as: UTF8.self).components(separatedBy: "\r\n")
        let words = lines[0].split(separator: " ").map(String.init)
        var request = Request(method: words[0], target: words[1])
        for line in lines.dropFirst() {
            guard let colon = line.firstIndex(of: ":") else { return nil }
            let value = line[line.index(after: colon)...].trimmingCharacters(in: .whitespaces)
            request.headers.append((line[..<colon].lowercased(), value))
        }
        received.removeFirst(head.upperBound)
        let length = request["content-length"].flatMap { Int($0) } ?? 0
        while received.count < length { if !receive(descriptor, &received) { return nil } }
        request.body = Array(received.prefix(length))
        received.removeFirst(length)
        return request
    }

    private static func receive(_ descriptor: Int32, _ received: inout [UInt8]) -> Bool {
        var buffer = [UInt8](repeating: 0, count: 1 << 16)
        let count = recv(descriptor, &buffer, buffer.count, 0)
        guard count > 0 else { return false }
        received += buffer[..<count]
        return true
    }

    private static func send(_ bytes: [UInt8], _ descriptor: Int32) -> Bool {
        var rest = bytes[...]
        while !rest.isEmpty {
            #if canImport(Darwin)
            let flags: Int32 = 0
            #else
            let flags = Int32(MSG_NOSIGNAL)
            #endif
            let count = rest.withUnsafeBytes { sendBytes(descriptor, $0.baseAddress, $0.count, flags) }
            guard count > 0 else { return false }
            rest = rest.dropFirst(count)
        }
        return true
    }
}

private func acceptConnection(_ listener: Int32) -> Int32 { accept(listener, nil, nil) }

private func sendBytes(_ descriptor: Int32, _ bytes: UnsafeRawPointer?, _ count: Int, _ flags: Int32) -> Int {
    send(descriptor, bytes, count, flags)
}
