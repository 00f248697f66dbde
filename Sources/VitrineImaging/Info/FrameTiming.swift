/// How long a frame of an animation stays, as every browser shows it.
package enum FrameTiming {
    /// Seconds for a delay the file gives in seconds: one up to 0.01 s means 0.1 s. Files that say so are far too
    /// fast to be meant; WebKit, Blink and Gecko agree on the rule.
    package static func seconds(_ delay: Double) -> Double { delay > 0.0105 ? delay : 0.1 }
}
