import CGTK
import Foundation
import VitrineGTK
import VitrineImaging

/// The grid, and what is known of its cells.
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
            // All processors for what is seen first; from then on one is left to drawing.
            library.service.concurrency = ProcessInfo.processInfo.activeProcessorCount - 1
        }
    }
}

/// The cells there are, and how many pictures they have shown.
@MainActor
final class PhotoBoard {
    private struct Entry { weak var cell: PhotoCell? }

    private var entries: [Entry] = []
    /// The size of pictures, which all cells share.
    let hint = SizeHint()
    /// Pictures that were shown, and those that were not to be had.
    private(set) var shown = 0, failed = 0

    func add(_ cell: PhotoCell) { entries.append(Entry(cell: cell)) }
    /// Called once, when nothing that is on screen is on its way any more.
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
        // Not before the cell that tells of itself is settled as well.
        Task {
            guard visible.allSatisfy(\.isSettled) else { return }
            onFirstScreen?()
            onFirstScreen = nil
        }
    }

    /// The cells that are alive.
    var cells: [PhotoCell] { entries.compactMap(\.cell) }

    /// The cells that are on screen.
    var visible: [PhotoCell] { cells.filter { $0.identifier != nil && $0.picture.isInView } }
}

/// A picture that fills its place.
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

    /// Whether it shows what it is to show, or that it cannot.
    var isSettled: Bool {
        switch picture.binding.state {
        case .shown, .failed: true
        case .empty, .loading: false
        }
    }

    /// Whether there is no picture to be had.
    var isFailed: Bool {
        if case .failed = picture.binding.state { true } else { false }
    }

    /// Whether its picture is on its way.
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
