import Foundation
import VitrineCore
import VitrineNetwork

extension S3Bucket {
    /// The most parts of an upload.
    private static let mostParts = 10_000

    /// Stores a sequence of chunks, in parts if it is longer than ``S3Client/Configuration/partSize``.
    ///
    /// A few parts are in memory at once. If the sequence throws, a part fails or the task is cancelled, the upload is
    /// aborted and the object does not change. An upload that could not be aborted leaves parts in the bucket, which a
    /// rule for incomplete uploads of the bucket should remove.
    ///
    /// - Parameters:
    ///   - chunks: The contents.
    ///   - key: The key.
    ///   - type: The media type. Default: `application/octet-stream`.
    ///   - metadata: Names and values in ASCII to store with the object.
    ///   - replacing: Whether to replace an existing object. If false, existing objects are looked for before the
    ///     upload, and again by servers that support conditional writes at its end. Default: true.
    /// - Returns: The number of stored bytes.
    /// - Throws: ``S3Error``, or the error of `chunks`.
    @discardableResult
    public func put<Chunks: AsyncSequence & Sendable>(
        chunks: Chunks, as key: String, type: String? = nil, metadata: [String: String] = [:], replacing: Bool = true
    ) async throws -> Int where Chunks.Element == [UInt8] {
        try S3Address.check(key: key)
        let size = max(1, client.configuration.partSize.bytes)
        var reader = PartReader(chunks.makeAsyncIterator(), size: size)
        let first = try await reader.next() ?? []
        guard first.count == size, let second = try await reader.next() else {
            guard !Task.isCancelled else { throw S3Error.cancelled(address(key)) }
            try await put(first, as: key, type: type, metadata: metadata, replacing: replacing)
            return first.count
        }
        if !replacing {
            guard client.supportsConditions(name) else { throw withoutConditions(key) }
            guard try await !exists(key) else { throw S3Error.alreadyExists(address(key)) }
        }
        let mark = Self.mark()
        let upload = try await begin(key, type: type, metadata: metadata.merging([Self.markName: mark]) { $1 })
        do {
            let (parts, count) = try await send([first, second], reader: &reader, upload: upload)
            // A sequence that was cancelled may simply end.
            guard !Task.isCancelled else { throw S3Error.cancelled(address(key)) }
            try await complete(upload, parts: parts, mark: mark, replacing: replacing)
            return count
        } catch {
            await abort(upload)
            throw error
        }
    }

    func exists(_ key: String) async throws(S3Error) -> Bool {
        do throws(S3Error) {
            _ = try await head(key)
            return true
        } catch .notFound {
            return false
        }
    }

    /// An upload in parts that has begun.
    private struct Upload: Sendable {
        let key: String
        let identifier: String
    }

    private func begin(
        _ key: String, type: String?, metadata: [String: String]
    ) async throws(S3Error) -> Upload {
        let call = S3Call(
            method: "POST", bucket: name, key: key, query: [("uploads", "")], headers: try Self.fields(type, metadata),
            body: [])
        let answer = try await client.send(call)
        let root = try xml(answer, key: key, name: "InitiateMultipartUploadResult")
        guard let identifier = root.text(of: "UploadId"), !identifier.isEmpty, identifier.utf8.count <= 1_024 else {
            throw .invalidResponse(address(key), reason: "it names no upload")
        }
        return Upload(key: key, identifier: identifier)
    }

    func xml(_ answer: S3Answer, key: String, name: String) throws(S3Error) -> XMLElement {
        let root: XMLElement
        do throws(XMLReader.Problem) { root = try XMLReader.parse(answer.body) } catch {
            throw .invalidResponse(address(key), reason: "its XML cannot be read: \(error.reason)")
        }
        guard root.name == name else { throw .invalidResponse(address(key), reason: "it is not a \(name)") }
        return root
    }

    private func send<Source>(
        _ first: [[UInt8]], reader: inout PartReader<Source>, upload: Upload
    ) async throws -> ([Int: String], Int) {
        let limit = max(1, client.configuration.concurrentParts)
        return try await withThrowingTaskGroup(of: (Int, String).self) { group in
            var tags: [Int: String] = [:]
            var number = 0
            var running = 0
            var count = 0
            var ready = first[...]
            while true {
                var part = ready.popFirst()
                if part == nil { part = try await reader.next() }
                guard let part else { break }
                number += 1
                guard number <= Self.mostParts else {
                    let most = client.configuration.partSize.bytes.multipliedReportingOverflow(by: Self.mostParts)
                    throw S3Error.tooLarge(
                        address(upload.key), limit: ByteCount(most.overflow ? .max : most.partialValue))
                }
                count += part.count
                if running == limit, let (number, tag) = try await group.next() {
                    tags[number] = tag
                    running -= 1
                }
                running += 1
                group.addTask { [number] in (number, try await send(part, number: number, upload: upload)) }
            }
            for try await (number, tag) in group { tags[number] = tag }
            return (tags, count)
        }
    }

    private func send(_ part: [UInt8], number: Int, upload: Upload) async throws(S3Error) -> String {
        let call = S3Call(
            method: "PUT", bucket: name, key: upload.key,
            query: [("partNumber", String(number)), ("uploadId", upload.identifier)], body: part)
        guard let tag = try await client.send(call).head.headers["ETag"] else {
            throw .invalidResponse(address(upload.key), reason: "a part has no entity tag")
        }
        return tag
    }

    private func complete(
        _ upload: Upload, parts: [Int: String], mark: String, replacing: Bool
    ) async throws(S3Error) {
        var body = "<CompleteMultipartUpload>"
        for (number, tag) in parts.sorted(by: { $0.key < $1.key }) {
            body += "<Part><PartNumber>\(number)</PartNumber><ETag>\(XMLReader.escaped(tag))</ETag></Part>"
        }
        body += "</CompleteMultipartUpload>"
        var call = S3Call(
            method: "POST", bucket: name, key: upload.key, query: [("uploadId", upload.identifier)],
            headers: [("content-type", "application/xml")], body: Array(body.utf8))
        if !replacing { call.headers.append(("if-none-match", "*")) }
        let (result, isUncertain) = try await client.run(call)
        switch result {
        case .success(let answer): _ = try xml(answer, key: upload.key, name: "CompleteMultipartUploadResult")
        case .failure(let error):
            // An attempt whose answer was lost may have completed it.
            if isUncertain, let object = try? await head(upload.key), object.metadata[Self.markName] == mark { return }
            if !replacing, case .notSupported = error {
                client.rememberNoConditions(name)
                throw withoutConditions(upload.key)
            }
            throw error
        }
    }

    /// Ends an upload without an object, even in a task that is cancelled.
    private func abort(_ upload: Upload) async {
        let call = S3Call(
            method: "DELETE", bucket: name, key: upload.key, query: [("uploadId", upload.identifier)])
        let client = client
        await Task { _ = try? await client.send(call) }.value
    }
}

/// Joins chunks to parts of one size.
private struct PartReader<Source: AsyncIteratorProtocol> where Source.Element == [UInt8] {
    private var source: Source
    private let size: Int
    private var rest: ArraySlice<UInt8> = []

    init(_ source: Source, size: Int) { (self.source, self.size) = (source, size) }

    /// Returns the next part, of which the last one may be shorter; nil at the end.
    mutating func next() async throws -> [UInt8]? {
        while rest.count < size, let chunk = try await source.next() {
            if rest.isEmpty { rest = chunk[...] } else { rest += chunk }
        }
        guard !rest.isEmpty else { return nil }
        let part = Array(rest.prefix(size))
        rest = part.count == rest.count ? [] : rest.dropFirst(size)
        return part
    }
}
