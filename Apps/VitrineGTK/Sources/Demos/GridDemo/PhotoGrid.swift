import CGTK
import Foundation
import VitrineGTK
import VitrineImaging

/// The grid and its cells.
@MainActor
final class PhotoGrid {
    let library: PhotoLibrary
    let list: ItemList
    let board = PhotoBoard()

    init(_ library: PhotoLibrary, columns: Int) {
        self.library = library
        list = ItemList(.grid(columns: columns), of: ListItems(library.identifiers)) { [board] in
            PhotoCell(library, board)
        }
        board.onFirstScreen = {
            // All processors load the first screen. After that, one is reserved for drawing.
            library.service.concurrency = ProcessInfo.processInfo.activeProcessorCount - 1
        }
    }
}

/// The living cells, and the number of images that they have shown.
@MainActor
final class PhotoBoard {
    private struct Entry { weak var cell: PhotoCell? }

    private var entries: [Entry] = []
    /// The size of the images, which all cells share.
    let hint = SizeHint()
    /// The number of images shown, and of images that failed.
    private(set) var shown = 0, failed = 0

    func add(_ cell: PhotoCell) { entries.append(Entry(cell: cell)) }
    /// Called once, when all loads of cells on screen have ended.
    var onFirstScreen: (() -> Void)?

    func didShow() {
        shown += 1
        look()
    }

    func didFail() {
        failed += 1
        look()
    }

    private func look() {
        guard onFirstScreen != nil else { return }
        // Later, when the reporting cell has settled as well.
        Task {
            guard visible.allSatisfy(\.isSettled) else { return }
            onFirstScreen?()
            onFirstScreen = nil
        }
    }

    /// The living cells.
    var cells: [PhotoCell] { entries.compactMap(\.cell) }

    /// The cells on screen.
    var visible: [PhotoCell] { cells.filter { $0.identifier != nil && $0.picture.isInView } }
}

/// A cell that its image fills.
@MainActor
final class PhotoCell: ListCell {
    let picture = Picture(fit: .cover)
    private(set) var identifier: String?
    private let library: PhotoLibrary
    private let board: PhotoBoard

    init(_ library: PhotoLibrary, _ board: PhotoBoard) {
        (self.library, self.board) = (library, board)
        picture.setSizeRequest(140, 105)
        picture.addClass("tile")
        picture.sizeHint = board.hint
        picture.retryDelay = PhotoLibrary.retryDelay
        board.add(self)
    }

    var root: Widget { picture }

    /// Whether the load has ended.
    var isSettled: Bool {
        switch picture.binding.state {
        case .shown, .failed: true
        case .empty, .loading: false
        }
    }

    /// Whether the load has failed.
    var isFailed: Bool {
        if case .failed = picture.binding.state { true } else { false }
    }

    /// Whether the image is loading.
    var isLoading: Bool {
        if case .loading = picture.binding.state { true } else { false }
    }

    func bind(_ identifier: String) {
        self.identifier = identifier
        picture.tooltip = identifier.split(separator: "/").last.map(String.init)
        picture.load(library.request(identifier), in: library.service) { [board] _ in board.didShow() } onFailure: { [board] _ in
            board.didFail()
        }
    }

    func unbind() {
        identifier = nil
        picture.prepareForReuse()
    }
}
