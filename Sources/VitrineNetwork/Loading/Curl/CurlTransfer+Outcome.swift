#if os(Linux)
import CVitrineCurl
import VitrineCore

extension CurlTransfer {
    /// Asks the guardian, on the loop's thread.
    func isAllowed(_ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
        guard let guardian, request.proxy.isEmpty else { return true }
        guard let address = IPAddress(bytes: bytes) else {
            confined.violation = .addressesUnknown
            return false
        }
        confined.violation = guardian(address)
        return confined.violation == nil
    }

    /// What a result of the library means.
    func outcome(_ result: Int32, _ message: String, now: Int64) -> Result<Void, NetworkError> {
        let url = request.displayURL
        // Of several addresses one that is refused may be followed by one that answers.
        if result == CCURL_OK { return .success(()) }
        if let failure = confined.failure { return .failure(failure) }
        if let violation = confined.violation { return .failure(.refused(url: url, violation)) }
        switch Int(result) {
        case CCURL_BAD_REQUEST: return .failure(.invalidURL(url: url, reason: message))
        case CCURL_NAME: return .failure(.nameNotResolved(url: url, host: request.url.host.text))
        case CCURL_CONNECT, CCURL_PROXY: return .failure(.notConnected(url: url, reason: message))
        case CCURL_TLS: return .failure(.insecure(url: url, reason: message))
        case CCURL_TIMEOUT: return .failure(.timedOut(url: url, timeoutPhase(now)))
        case CCURL_TRUNCATED:
            let received = state.withLock { $0.received }
            return .failure(.truncated(url: url, received: ByteCount(received), reason: message))
        case CCURL_HEAD_CUT: return .failure(missingHead)
        case CCURL_NO_HEAD:
            return .failure(.invalidResponse(url: url, reason: "there is no final header before its body"))
        case CCURL_HEADER_LIMIT: return .failure(.headerTooLarge(url: url))
        case CCURL_PROTOCOL: return .failure(.invalidResponse(url: url, reason: message))
        case CCURL_STOPPED, CCURL_MEMORY: return .failure(.invalidResponse(url: url, reason: message))
        default: return .failure(.unavailable(url: url, reason: message))
        }
    }

    private func timeoutPhase(_ now: Int64) -> NetworkError.TimeoutPhase {
        if confined.isConnected { return .total }
        // The library tells both by one code.
        let total = Int64(request.totalTimeout)
        return total > 0 && now - confined.startedAt >= total ? .total : .connect
    }
}
#endif
