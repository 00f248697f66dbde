public import VitrineNetwork
public import VitrinePipeline

extension ImageSource where Self == BuiltInSource {
    /// A web page, drawn by an installed browser: Chromium, Google Chrome or their headless shell.
    ///
    /// The browser is the program in the environment variable `VITRINE_BROWSER`, else the first of its usual names in
    /// `PATH`. It is started for each page, with a profile of its own that is removed afterwards. A page takes a second
    /// or more, and at most 20 seconds; give the pipeline a time limit to match. The browser may use 2 GiB of memory.
    ///
    /// Pages run their scripts. All they load goes through a proxy of this process, which resolves names itself, checks
    /// every address by the policy, and connects to the address it has checked. This includes redirects, frames, images
    /// and scripts.
    ///
    /// - A page at a public address loads from public addresses only, unless the policy allows redirects to private
    ///   ones. The same goes for pages of files and of `data:` addresses.
    /// - A page of a file reads files in its own directory and below only; other pages read none.
    /// - A page that leads on at once is followed, as often as the policy allows redirects.
    ///
    /// The identity is the address with all options that change the result. The content of a page can change without
    /// its address; give such pages an identity with a date, by `BuiltInSource.identified(by:)`.
    ///
    /// - Parameters:
    ///   - url: The address, such as `https://example.org/`.
    ///   - viewportWidth: The width of the layout in CSS pixels, at least 300. The height is in proportion to the
    ///     request's. Default: the request's own width.
    ///   - showsFullPage: Whether the whole page is shown, however long, instead of its beginning. The image then has
    ///     the page's shape.
    ///   - policy: The policy for the addresses of the page and of all that it loads. Use `URLAccessPolicy.publicOnly`
    ///     for addresses that strangers name.
    ///   - schemes: The allowed schemes. Without `http` and `https`, pages reach no network at all.
    ///   - usesSandbox: Whether the browser keeps its pages in a sandbox. It cannot do so for the user root, nor in
    ///     many containers. Without it, a page that breaks the browser has all rights of this process.
    public static func webPage(
        _ url: String, viewportWidth: Int? = nil, showsFullPage: Bool = false,
        policy: URLAccessPolicy = .userInitiated, schemes: Set<WebPageScheme> = [.http, .https],
        usesSandbox: Bool = true
    ) -> BuiltInSource {
        var source = WebPageSource(url: url)
        source.viewportWidth = viewportWidth
        source.showsFullPage = showsFullPage
        source.policy = policy
        source.allowedSchemes = schemes
        source.usesSandbox = usesSandbox
        return BuiltInSource(source)
    }
}
