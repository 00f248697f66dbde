import Foundation

/// A text and what the programs brotli(1) and zstd(1) make of it, with a checksum in the frame of zstd.
enum CodedBodies {
    static let plain = (0..<400).flatMap { Array("row \($0 * 7919 % 1000) of the lake\n".utf8) }

    static let brotli = decoded(
        """
        GxAfYBwJNk52bZ6JRCNUer6ZyenYMFVDFNgthTv+qU4ooMEoPdtvWbRFPOsabIxdXVoE7uoYamuPr+Kfff8pTvmH/t/pec/l3fS7
        rF9Y/jx4x937cd/X88v0//y77D2iiCic8A9tEAHFpbbLrJhbKOpIIxO+EIMOJPDj9mOhRheXHd0IHmu+b1WRJVHALTM/bhS/qsiS
        KFzyuT/ETuCriiyJAi66MVP3VeRiE1HAbfng+mcnVZElUMCFNzo1X1VkSRQu/aG1xfmTqsiSKOCCu9jS2DoUWRIFXGBDU/kqIkui
        gIvb4JS/qsiQKOBiNzClryqyJAIXGtwTzlIVWRKFG33swaQqsiQKuOjGTN1HFVkSBdyW1j87qQoMiQIuvNGp+aoiSyKAW6SS8ydV
        kSVRwC304VH9qiJLooALbGgiH1VkSRRwcRuc8lcVWBIF3LaAh5pURZZAAbcN3GNOqiJLonCDrz2YpSqyJAq4rTS4g0mRJVHAbSn9
        s5OKyJIo4BYr9sykKrIECrhFyjl/UhVZEoWLD67wVL+qyJIo4AK7yFc+VZElUcDFbXDKX0VkSRRw2wIeaFIVGRIF3DZwjzipiiyJ
        wCVvoT2Y71tVZEkUcFthdAeTIkuigNtC/+yEKrIkCrjFCj0zqQp8yxsBtyh/UAA=
        """)

    static let zstd = decoded(
        """
        KLUv/QRoNRMAtvdqFrAnwwHQgAQygZWkHJlSkjIlWJtkLgFqAGEAYgAzaUjSEnsnFidGEntZz5xW9d+aoMiKHiJWXHdRjGwLfkrT
        1fFXg4QTloxHxHIsLyo3aplvxTm14/FRDwuNlClyybxUxaUbrhP01vNVRIl4I5IzQkV1TT5fUgAFgoCCoTCAMAgYDDEkGBwEnU36
        kKRln4qxkdjZGdob/lsTFFnRQ8SK6y6KkcmC35Q005Hjb9VBF05YY6LS8ipHZbYz5tSOt0c9LDRSpsgl81Il8Um5GY4m6G3t+Rcl
        HpEjVLXpLHmEfOXMRtG7n1qIVCFSM2lI0rJPxRgldnaG5ob/1gRFVvQQseK6i2JkC35K043jrwYJJ6wxUWl5laMymxlzaseTR31h
        Cs1IlKmSXbp5qYpLN9xM0FvPVxElHpEjVLXpLHGEfOXMhKKfy8/UKEQqbz1f9e6nFiI1k4YkLftUjE1iZ2dobfhvTVBkJfSIHKEi
        lzxf8VOajo6/GiScsMZEpeVVjspsZcypHe9RDwuNlClyybxUxaUbjhP01vNVRIlH5AhVbTpLGiFfOTOK3v3UAoGQqCEIsffPsfLS
        GBEgBK8QRP09BSIcgTlBA2Up/nPn0iIgT9WHImpJixLmMkPeBc0wouRd4cqDBEMNiWFhB/OYbIIENwfNEGxKGI48WizrvYX8+gQo
        cZMv5ZqHTz4TxVn/XgQUWpLDTZnhW1uJsrYvbwKJ6EYDZjFugmt+TVJHNi1OSI0aKJVpsn3xa5I6skaaRkxsuYkHcWovMVVleU8q
        ahB8ROKW6dVCRh6KdSXmOpD73UgBfxV1LTSY
        """)

    private static func decoded(_ text: String) -> [UInt8] {
        Array(Data(base64Encoded: text, options: .ignoreUnknownCharacters) ?? Data())
    }
}
