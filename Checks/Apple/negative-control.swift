// Errors that the type check must find. Each comment names the error of its line.
import Synchronization
import UIKit

#if !os(iOS)
#error("this is not iOS")
#endif
#if !canImport(ObjectiveC)
#error("there is no Objective-C")
#endif

@MainActor func control(_ view: UIImageView) {
    view.imag = nil  // finds: has no member 'imag'
    _ = UIControl.State.normal.hashValue  // finds: requires that 'UIControl.State' conform to 'Hashable'
    _ = Task.immediate {}  // finds: is only available in iOS 26.0
}

final class Control: Sendable {
    let token: any NSObjectProtocol = NSObject()  // finds: non-Sendable type 'any NSObjectProtocol'
}
