/// A command of the DevTools protocol; what is nil is not sent.
struct BrowserCommand: Encodable {
    struct Clip: Encodable {
        var x = 0.0
        var y = 0.0
        var width: Double
        var height: Double
        var scale = 1.0
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
    }

    var id: Int
    var method: String
    var params: Parameters
    var sessionId: String?
}

/// An answer or event of the DevTools protocol, as far as it is looked at.
struct BrowserReply: Decodable {
    struct Size: Decodable {
        var width: Double
        var height: Double
    }

    struct Result: Decodable {
        var targetId: String?
        var sessionId: String?
        var loaderId: String?
        var errorText: String?
        var cssContentSize: Size?
        var data: String?
    }

    struct Parameters: Decodable {
        var name: String?
        var loaderId: String?
    }

    struct Failure: Decodable {
        var message: String?
    }

    var id: Int?
    var method: String?
    var result: Result?
    var params: Parameters?
    var error: Failure?
}
