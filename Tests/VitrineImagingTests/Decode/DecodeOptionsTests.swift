import Testing
import VitrineCore
@_spi(JPEGRows) import VitrineImageCore
import VitrineImaging

@Suite struct DecodeOptionsTests {
    /// Every option with another value than the default.
    private static let changed: DecodeOptions = {
        var options = DecodeOptions(
            page: 2, allowsEmbeddedPreview: true, allowsPartial: true,
            region: PixelRect(x: 1, y: 2, width: 3, height: 4))
        (options.acceptsMeans, options.notesRows) = (true, true)
        return options
    }()

    /// Fails for an option that was added to the type and not to ``changed``.
    @Test func everyOptionIsTested() {
        for (other, standard) in zip(
            Mirror(reflecting: Self.changed).children, Mirror(reflecting: DecodeOptions()).children)
        {
            #expect(String(describing: other.value) != String(describing: standard.value), "\(other.label ?? "")")
        }
    }

    @Test func everyOptionReachesTheDecoderOfAWorker() throws {
        let pool = WorkerPool(
            program: "WorkerTestHost", location: .executable(WorkerFixture.host), maximumWorkers: 1,
            memory: HelperMemory(total: 64 << 30))
        for options in [DecodeOptions(), Self.changed] {
            let request = DecodeRequest(
                info: ImageInfo(format: .png, storedSize: PixelSize(9)), target: nil, options: options)
            let error = #expect(throws: ImageError.self) {
                try pool.decode(ByteSource(bytes: [1], name: "any"), request, decoder: "EchoingDecoder")
            }
            #expect(error == .corrupt(input: "any", reason: String(describing: options)))
        }
    }

    @Test func everyOptionChangesTheIdentity() {
        #expect(DecodeOptions().changes.isEmpty)
        #expect(Set(Self.changed.changes).count == Mirror(reflecting: Self.changed).children.count)
    }
}
