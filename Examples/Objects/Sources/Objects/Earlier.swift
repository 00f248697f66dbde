import VitrineModels

// The same types in earlier releases. A real program no longer contains them, only the data that they stored.

enum FirstRelease {
    @Persistable(version: "1.0.0", name: "Foo", extensible: true) class Foo {
        var title = ""
        var date = 0.0
        var bar: Bar?
    }

    @Persistable(version: "1.0.0", name: "Bar") struct Bar {
        var name: String
        var count: Int
    }
}

enum SecondRelease {
    @Persistable(version: "1.1.0", name: "Foo", extensible: true) class Foo {
        var string = ""
        var bar: Bar?
        weak var parent: Foo?
    }

    @Persistable(version: "1.0.0", name: "Bar") struct Bar {
        var name: String
        var count: Int
    }
}
