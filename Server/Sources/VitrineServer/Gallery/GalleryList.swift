import Foundation
import HTTPTypes
import Hummingbird
import HummingbirdCore
import NIOCore
import VitrineImaging
import VitrinePipeline

/// Pages of plain links for browsers without JavaScript: a folder, and the form for the token.
struct GalleryList: Sendable {
    static let pageSize = 500

    let listing: GalleryListing
    /// The name of the root.
    let title: String
    let offset: Int

    private var folder: [String] { listing.query.folder }

    var html: String {
        let name = HTMLText.shown(folder.last ?? title)
        let folders = offset == 0 ? listing.folders : []
        let entries = listing.entries.dropFirst(offset).prefix(Self.pageSize)
        var body = folder.isEmpty ? "" : "<nav class=\"crumbs\" aria-label=\"Folders above\"><ol>\(crumbs)</ol></nav>\n"
        body += "<main>\n<h1>\(name)</h1>\n"
        if folders.isEmpty, entries.isEmpty { body += "<p>There is nothing to show in this folder.</p>\n" }
        if listing.isTruncated { body += "<p>The folder has more files than a list can hold.</p>\n" }
        if !folders.isEmpty {
            let links = folders.map { "<li>\(Self.link(toFolder: folder + [$0], text: $0))</li>\n" }
            body += "<h2>Albums</h2>\n<ul>\n\(links.joined())</ul>\n"
        }
        if !entries.isEmpty {
            body += "<h2>Files</h2>\n<ul>\n" + entries.map(item).joined() + "</ul>\n"
        }
        return Self.page(title: name, body: body + pages + "</main>\n")
    }

    private var crumbs: String {
        (0..<folder.count).map { count in
            let path = Array(folder.prefix(count))
            return "<li>\(Self.link(toFolder: path, text: path.last ?? title))</li>"
        }.joined()
    }

    private func item(_ entry: GalleryListing.Entry) -> String {
        let path = folder + entry.name.split(separator: "/").map(String.init)
        let address = Gallery.prefix + "/original/" + HTMLText.path(path)
        let kind =
            switch entry.kind {
            case .image: "photo"
            case .document, .container: "document"
            case .video: "video"
            case .recording: "recording"
            case .font: "font"
            }
        let size = ByteCountFormatter.string(fromByteCount: entry.stamp.bytes, countStyle: .file)
        return "<li><a href=\"\(address)\"><bdi>\(HTMLText.shown(entry.name))</bdi></a> \(kind), \(size)</li>\n"
    }

    /// Links to the parts of a long list.
    private var pages: String {
        guard listing.entries.count > Self.pageSize else { return "" }
        var links: [String] = []
        func add(_ text: String, _ offset: Int) {
            let address = Self.address(folder) + "&amp;listing=\(listing.number)&amp;offset=\(offset)"
            links.append("<a href=\"\(address)\">\(text)</a>")
        }
        if offset > 0 { add("Previous files", max(0, offset - Self.pageSize)) }
        if offset + Self.pageSize < listing.entries.count { add("Next files", offset + Self.pageSize) }
        let last = min(offset + Self.pageSize, listing.entries.count)
        let place = "\(min(offset + 1, last)) to \(last) of \(listing.entries.count)"
        return "<nav aria-label=\"Parts of the list\">\(place) \(links.joined(separator: " "))</nav>\n"
    }

    private static func address(_ folder: [String]) -> String {
        Gallery.prefix + "/list?path=" + HTMLText.path(folder)
    }

    private static func link(toFolder folder: [String], text: String) -> String {
        "<a href=\"\(address(folder))\"><bdi>\(HTMLText.shown(text))</bdi></a>"
    }

    // MARK: Other pages

    /// The form for the token.
    ///
    /// - Parameter isWrong: Whether another text was sent as the token.
    static func door(isWrong: Bool) -> String {
        let text = isWrong
            ? "This is not the token." : "The operator of this server has set it as <code>gallery-token</code>."
        return page(
            title: "Gallery",
            body: """
                <main><form class="door" method="post" action="\(Gallery.prefix)/token">
                <h1>Gallery</h1>
                <label for="token">Token</label>
                <input id="token" name="token" type="password" autocomplete="current-password" required>
                <p\(isWrong ? " class=\"bad\"" : "")>\(text)</p>
                <button type="submit">Open</button>
                </form></main>

                """)
    }

    /// The page in the place of a folder that cannot be shown.
    static func failure(_ error: RequestError) -> String {
        let text =
            switch error.code {
            case "not-readable": "The server may not read this folder."
            case "source-not-found": "There is no such folder. It may have been renamed or deleted."
            default: HTMLText.shown(error.reason)
            }
        let home = "<p><a href=\"\(Gallery.prefix)/list\">All albums</a></p>"
        return page(title: "Gallery", body: "<main><h1>Gallery</h1>\n<p>\(text)</p>\n\(home)</main>\n")
    }

    private static func page(title: String, body: String) -> String {
        """
        <!doctype html>
        <html lang="en">
        <head>
        <meta charset="utf-8">
        <meta name="viewport" content="width=device-width, initial-scale=1">
        <meta name="color-scheme" content="light dark">
        <title>\(title)</title>
        <link rel="icon" href="\(Gallery.prefix)/assets/icon.svg" type="image/svg+xml">
        <link rel="stylesheet" href="\(Gallery.prefix)/assets/style.css">
        </head>
        <body class="list">
        \(body)</body>
        </html>

        """
    }
}

/// Text in HTML.
enum HTMLText {
    /// A name as text: escaped, with U+FFFD for bytes that are not UTF-8, and for characters that break lines or
    /// turn the direction of the text after them.
    static func shown(_ name: String) -> String {
        var text = ""
        for scalar in name.unicodeScalars {
            switch scalar {
            case "&": text += "&amp;"
            case "<": text += "&lt;"
            case ">": text += "&gt;"
            case "\"": text += "&quot;"
            // Bytes that are not UTF-8.
            case "\u{10FE80}"..."\u{10FEFF}": text += "\u{FFFD}"
            // Joiners belong to emoji and to several scripts.
            case "\u{200C}", "\u{200D}": text.unicodeScalars.append(scalar)
            case _ where UnseenText.isUnseen(scalar): text += "\u{FFFD}"
            default: text.unicodeScalars.append(scalar)
            }
        }
        return text
    }

    private static let allowed = CharacterSet(
        charactersIn: "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~")

    /// Names as the path of an address.
    static func path(_ names: [String]) -> String {
        names.map { $0.addingPercentEncoding(withAllowedCharacters: allowed) ?? "" }.joined(separator: "/")
    }
}
