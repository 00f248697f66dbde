/// A small font for captions: ASCII, 5 pixels wide and 9 high, of which 7 stand above the base line.
///
/// Drawn for this project.
enum BitmapFont {
    static let width = 5
    static let height = 9
    /// From one character to the next.
    static let advance = 6

    /// The rows of a character from the top, the leftmost pixel in bit 4; a question mark for unknown ones.
    static func rows(of character: Character) -> [UInt8] { glyphs[character] ?? glyphs["?"] ?? [] }

    /// Each character followed by its rows as digits of base 32 (`0`–`9`, `a`–`v`); rows left out at the end are blank.
    private static let source = """
        !4444404 "aa #aavavaa $4fke5u4 %op248j3 &cik8lid '44 (2488842 )8422248 *04lel4 +044v44 ,00000cc48
        -000v .00000cc /01248g 0ehjlphe 14c4444e 2eh1248v 3v2421he 426aiv22 5vgu11he 668guhhe 7v124888 8ehhehhe
        9ehhf12c :0cc00cc ;0cc00cc48 <248g842 =00v0v >8421248 ?eh12404 @eh1dlle Aehhvhhh Buhhuhhu Cehggghe Dsihhhis
        Evgguggv Fvgguggg Gehgnhhf Hhhhvhhh Ie44444e J72222ic Khikokih Lggggggv Mhrllhhh Nhhpljhh Oehhhhhe Puhhuggg
        Qehhhlid Ruhhukih Sfgge11u Tv444444 Uhhhhhhe Vhhhhha4 Whhhllla Xhha4ahh Yhhha444 Zv1248gv [e88888e \\0g8421
        ]e22222e ^4ah _0000000v `84 a00e1fhf bggmphhu c00egghe d11djhhf e00ehvge f698s888 g00fhhhf1e hggmphhh i40c444e
        j2062222ic kggikoki lc44444e m00qllll n00mphhh o00ehhhe p00uhhhugg q00fhhhf11 r00mpggg s00fge1u t88s8896
        u00hhhjd v00hhha4 w00hllla x00ha4ah y00hhhhf1e z00v248v {2448442 |4444444 }8442448 ~008l2 ×00ha4ah ·000cc
        …000000l
        """

    private static let glyphs: [Character: [UInt8]] = {
        var glyphs: [Character: [UInt8]] = [" ": [UInt8](repeating: 0, count: height)]
        for word in source.split(whereSeparator: \.isWhitespace) where word.count > 1 {
            guard let character = word.first else { continue }
            let rows = word.dropFirst().compactMap { UInt8(String($0), radix: 32) }
            glyphs[character] = rows + [UInt8](repeating: 0, count: max(0, height - rows.count))
        }
        return glyphs
    }()
}
