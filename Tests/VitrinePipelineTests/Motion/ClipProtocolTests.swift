import Testing
import VitrineHelperProtocol
import VitrineImaging

struct ClipProtocolTests {
    private static var clip: VideoClip {
        var clip = VideoClip()
        clip.size = PixelSize(width: 3, height: 2)
        clip.append(PixelImage(size: clip.size, color: PixelColor(red: 1, green: 2, blue: 3)), seconds: 0.1)
        clip.append(PixelImage(size: clip.size, color: PixelColor(red: 250, green: 0, blue: 9)), seconds: 0.25)
        return clip
    }

    @Test func clipsAreReadAsTheyWereWritten() throws {
        let clip = Self.clip
        let read = try #require(VideoClip(clip.encoded(), limits: .standard))
        #expect(read == clip && read.seconds == [0.1, 0.25])
        #expect(read.image(at: 1) == PixelImage(size: clip.size, color: PixelColor(red: 250, green: 0, blue: 9)))
    }

    @Test func clipsThatLieAreRefused() {
        let bytes = Self.clip.encoded()
        for count in 0..<bytes.count { #expect(VideoClip(Array(bytes.prefix(count)), limits: .standard) == nil) }
        #expect(VideoClip(bytes + [0], limits: .standard) == nil)
        for place in [0, 7, 8, 15, 16, 23] {
            var lying = bytes
            lying[place] ^= 0x81
            #expect(VideoClip(lying, limits: .standard) == nil)
        }
        var endless = bytes
        endless.replaceSubrange(24..<32, with: withUnsafeBytes(of: Double.infinity.bitPattern.littleEndian) { Array($0) })
        #expect(VideoClip(endless, limits: .standard) == nil)
        var limits = ImageLimits()
        limits.maximumOutputSide = 2
        #expect(VideoClip(bytes, limits: limits) == nil)
    }

    @Test func parametersAreCheckedByTheHelper() throws {
        var parameters = ClipParameters()
        parameters.target = DocumentTarget(PixelSize(64), .fit, allowsUpscaling: false)
        #expect(ClipParameters(parameters.encoded()) == parameters)
        for (seconds, rate) in [(0, 10), (3, 0), (.nan, 1), (1, .infinity), (301, 1), (-3, -10)] as [(Double, Double)] {
            (parameters.seconds, parameters.framesPerSecond) = (seconds, rate)
            #expect(ClipParameters(parameters.encoded()) == nil)
        }
        #expect(ClipParameters([]) == nil)
    }
}
