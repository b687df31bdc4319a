// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewJSON
import Foundation
import Testing
@Suite(.timeLimit(.minutes(1))) struct FastJSONDecoderTests {
    @Test func decodes() throws {
        struct P: Decodable { var a: Int; var b: [String] }
        let p = try FastJSONDecoder().decode(P.self, from: Data(#"{"a": 3, "b": ["x", "y\u00e9"]}"#.utf8))
        #expect(p.a == 3 && p.b == ["x", "yé"])
    }
}
