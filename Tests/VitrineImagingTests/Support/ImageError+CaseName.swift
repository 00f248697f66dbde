import VitrineImaging

extension ImageError {
    /// The name of the case, without what it carries.
    var caseName: String { Mirror(reflecting: self).children.first?.label ?? "\(self)" }
}
