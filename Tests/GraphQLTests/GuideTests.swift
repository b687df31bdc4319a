// SPDX-License-Identifier: Apache-2.0
import CurlewTestSupport
import Testing

/// The article's code is compiled; ``StrawberryTests`` runs it.
@Suite struct GuideTests {
    // A2.3
    @Test("every block of the article is compiled, and everything compiled for it is in it") func sameCode() throws {
        let here = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        let page = here.appendingPathComponent("../../Sources/GraphQL/CurlewGraphQL.docc/UsingGraphQL.md")
        #expect(try DocumentedCode.differences(page: page, sources: here.appendingPathComponent("Guide.swift")) == [])
    }
}
