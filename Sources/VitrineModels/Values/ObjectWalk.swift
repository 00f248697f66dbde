#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// What comparisons and hashes of objects on one thread are inside of, so that cycles end.
final class ObjectWalk {
    private struct Pair: Hashable {
        let first: ObjectIdentifier
        let second: ObjectIdentifier
    }

    /// Pairs that are being compared or were found equal, in the order in which they were begun.
    private var pairs: [Pair] = []
    /// The same, once there are too many to look through.
    private var index: Set<Pair> = []
    private var depth = 0
    private var isHashing = false

    /// Pairs that are looked through one by one.
    private static let fewPairs = 12

    /// The walk of the calling thread.
    private static var current: ObjectWalk {
        if let known = pthread_getspecific(slot) {
            return Unmanaged<ObjectWalk>.fromOpaque(known).takeUnretainedValue()
        }
        let walk = ObjectWalk()
        pthread_setspecific(slot, Unmanaged.passRetained(walk).toOpaque())
        return walk
    }

    private static let slot: pthread_key_t = {
        var key = pthread_key_t()
        let code = pthread_key_create(&key) { pointer in
            #if canImport(Darwin)
            Unmanaged<ObjectWalk>.fromOpaque(pointer).release()
            #else
            if let pointer { Unmanaged<ObjectWalk>.fromOpaque(pointer).release() }
            #endif
        }
        precondition(code == 0, "no thread-local storage is left")
        return key
    }()

    /// Runs the comparison of two objects, unless it runs already or was found to be true: then they are taken for
    /// equal. What was found while a comparison ran is forgotten if that ends in a difference, as it may rest on it.
    static func comparing(_ first: AnyObject, _ second: AnyObject, _ body: () -> Bool) -> Bool {
        let walk = current
        let pair = Pair(first: ObjectIdentifier(first), second: ObjectIdentifier(second))
        if walk.contains(pair) { return true }
        let begin = walk.pairs.count
        walk.insert(pair)
        walk.depth += 1
        let isEqual = body()
        walk.depth -= 1
        if walk.depth == 0 || !isEqual { walk.forget(from: begin) }
        return isEqual
    }

    private func contains(_ pair: Pair) -> Bool {
        pairs.count > Self.fewPairs ? index.contains(pair) : pairs.contains(pair)
    }

    private func insert(_ pair: Pair) {
        pairs.append(pair)
        if pairs.count == Self.fewPairs + 1 {
            index = Set(pairs)
        } else if pairs.count > Self.fewPairs {
            index.insert(pair)
        }
    }

    private func forget(from begin: Int) {
        if begin <= Self.fewPairs {
            index = []
        } else {
            for pair in pairs[begin...] { index.remove(pair) }
        }
        pairs.removeSubrange(begin...)
    }

    /// Runs the hashing of an object's properties, unless it is inside another object's.
    static func hashing(_ body: () -> Void) {
        let walk = current
        guard !walk.isHashing else { return }
        walk.isHashing = true
        defer { walk.isHashing = false }
        body()
    }
}
