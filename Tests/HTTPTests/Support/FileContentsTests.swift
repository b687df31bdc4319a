// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewTestSupport
import Foundation
import Testing

@Suite(.timeLimit(.minutes(1))) struct FileContentsTests {
    @Test("a file is read whole", arguments: [0, 1, 65_536, 3_000_001])
    func whole(count: Int) throws {
        let directory = try TemporaryDirectory()
        let file = directory.file("contents")
        let bytes = Data((0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31) })
        try bytes.write(to: file)
        #expect(try Data(readingFrom: file) == bytes)
    }

    @Test("a file of the kernel, whose size is given as 0, is read")
    func ofTheKernel() throws {
        let file = URL(fileURLWithPath: "/proc/self/status")
        guard FileManager.default.fileExists(atPath: file.path) else { return }
        #expect(try !Data(readingFrom: file).isEmpty)
    }

    @Test("a missing file and a directory are errors that name the file")
    func failures() throws {
        let directory = try TemporaryDirectory()
        let missing = directory.file("missing")
        #expect { try Data(readingFrom: missing) } throws: { error in
            (error as? CocoaError)?.code == .fileReadNoSuchFile && (error as? CocoaError)?.filePath == missing.path
        }
        #expect(throws: CocoaError.self) { try Data(readingFrom: directory.file("missing").deletingLastPathComponent()) }
    }
}
