// SPDX-License-Identifier: Apache-2.0
import CurlewTestSupport
import Testing

@Suite(.timeLimit(.minutes(1))) struct ScaleTableTests {
    @Test("each line of the table of what holds names tests, and each of them exists") func table() throws {
        let table = try TestTable(of: "SCALE.md", under: "What holds, and its tests")
        #expect(table.rows.count > 30)
        #expect(try table.problems() == [])
    }
}
