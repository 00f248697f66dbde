/// A command of the DevTools protocol. Members that are nil are not sent.
struct BrowserCommand: Encodable {
    struct Clip: Encodable {
        var x = 0.0
        var y = 0.0
        var width: Double
        var height: Double
        var scale = 1.0
    }

    struct Pattern: Encodable {
        var urlPattern: String
        var resourceType: String?
    }

    struct Parameters: Encodable {
        var url: String?
        var targetId: String?
        var flatten: Bool?
        var enabled: Bool?
        var width: Double?
        var height: Double?
        var deviceScaleFactor: Double?
        var mobile: Bool?
        var format: String?
        var captureBeyondViewport: Bool?
        var clip: Clip?
        var accept: Bool?
        var patterns: [Pattern]?
        var requestId: String?
        var errorReason: String?
        var behavior: String?
    }

    var id: Int
    var method: String
    var params: Parameters
    var sessionId: String?
}

/// An answer or event of the DevTools protocol, as far as it is looked at.
package struct BrowserReply: Decodable {
    package struct Size: Decodable {
        var width: Double
        var height: Double
    }

    package struct Result: Decodable {
        var targetId: String?
        var sessionId: String?
        var loaderId: String?
        var frameId: String?
        var errorText: String?
        var cssContentSize: Size?
        package var data: String?
    }

    struct Frame: Decodable {
        var id: String
        var parentId: String?
        var loaderId: String?
        var unreachableUrl: String?
    }

    struct Request: Decodable {
        var url: String
    }

    package struct Parameters: Decodable {
        var name: String?
        var loaderId: String?
        var frameId: String?
        var frame: Frame?
        var delay: Double?
        var requestId: String?
        var request: Request?
        var redirectedRequestId: String?
    }

    package struct Failure: Decodable {
        var message: String?
    }

    var id: Int?
    var method: String?
    package var result: Result?
    var params: Parameters?
    var error: Failure?
}
