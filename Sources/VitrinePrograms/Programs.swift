// No code: the dependencies of this target are the programs that `Scripts/run` needs. See Package.swift.
