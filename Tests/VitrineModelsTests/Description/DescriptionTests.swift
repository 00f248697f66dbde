import Foundation
import ModelsSamples
import Testing
import VitrineModels

@Suite struct DescriptionTests {
    @Test func classesNestTheirSuperclasses() {
        let dog = Dog("Re\"x")
        dog.chip = "C"
        dog.friend = dog
        #expect(
            dog.description == """

                {
                  "*Dog" : {
                    "barks" : 3,
                    "**Animal" : {
                      "(Vet)chip" : "C",
                      "name" : "Re\\"x",
                      "friend" : "<*Dog again>",
                      "keeper" : null
                    }
                  }
                }
                """)
        #expect(String(reflecting: dog) == dog.description)
        #expect(dog.persistentDescription == dog.description.dropFirst())
        dog.friend = nil
    }

    @Test func everythingIsJSON() throws {
        var value = Everything()
        value.double = .infinity
        value.date = .distantFuture
        value.animal = Dog("x")
        let object = try JSONSerialization.jsonObject(with: Data(value.persistentDescription.utf8))
        let top = (object as? [String: Any])?["*Everything"] as? [String: Any]
        #expect(top?["double"] as? String == "inf")
        #expect(top?["text"] as? String == value.text)
        #expect((top?["numbers"] as? [NSNumber])?.last == NSNumber(value: Int.min))
        #expect(Date(timeIntervalSinceReferenceDate: .nan).persistentDescription == "\"nan\"")
        #expect([String: Int]().persistentDescription == "{}")
    }
}
