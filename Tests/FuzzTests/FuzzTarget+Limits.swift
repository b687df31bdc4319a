// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import Foundation

@testable import CurlewCore
@testable import CurlewTransport

extension FuzzTarget {
    /// What a peer may ask for in any number.
    static let limits: [FuzzTarget] = [
        FuzzTarget(name: "challenges", check: challenges), FuzzTarget(name: "nested-codings", check: nestedCodings),
    ]

    /// The input's zero bytes separate fields.
    private static func challenges(_ input: [UInt8]) throws {
        let fields = input.split(separator: 0).map { text(Array($0)) }
        let parsed = AuthenticationChallenge.challenges(in: fields)
        try require(parsed.count <= AuthenticationChallenge.limit, "\(parsed.count) challenges")
        // The first ones are parsed, whatever follows.
        let more = AuthenticationChallenge.challenges(in: fields + [String](repeating: "Basic", count: 100))
        try require(more.starts(with: parsed), "further challenges change the first ones")
        try require(more.count == AuthenticationChallenge.limit, "\(more.count) challenges of more than the limit")
        let ranked = AnswerableChallenge.ranked(parsed)
        try require(ranked.count <= parsed.count, "\(ranked.count) of \(parsed.count) challenges can be answered")
    }

    /// The first byte chooses the codings, and the size of the pieces.
    private static func nestedCodings(_ input: [UInt8]) throws {
        guard let first = input.first else { return }
        let codings = ["gzip, gzip", "gzip, gzip, gzip", "deflate, gzip", "deflate, deflate", ContentDecoder.known.joined(separator: ", ")]
        let head = ResponseHead(statusCode: 200, headers: ["Content-Encoding": codings[Int(first) % codings.count]])
        let size = max(Int(first) / 4, 1)
        let body = Array(input.dropFirst())
        let whole = decoded(body, head, size: size, action: .proceed)
        let interrupted = decoded(body, head, size: size, action: .pause)
        try require(whole?.bytes == interrupted?.bytes, "an interruption changes the result")
        try require(whole?.isComplete == interrupted?.isComplete, "an interruption changes the end")
        let largest = max(16 << 20, 4 * body.count)
        try require(whole?.bytes.count ?? 0 <= largest, "\(whole?.bytes.count ?? 0) bytes of \(body.count)")
    }

    private static func decoded(
        _ body: [UInt8], _ head: ResponseHead, size: Int, action: ReceiveAction
    ) -> (bytes: [UInt8], isComplete: Bool)? {
        guard var decoder = try? BodyDecoder(for: head, maximumExpansion: 4) else { return nil }
        var slice = DecodingSlice()
        var output: [UInt8] = []
        do {
            for start in stride(from: 0, to: body.count, by: size) {
                let range = start..<min(start + size, body.count)
                try body[range].withUnsafeBytes { piece in
                    var ending = BodyDecoder.Ending.interrupted
                    while ending == .interrupted {
                        ending = try decoder.decode(piece, received: Int64(range.upperBound), &slice) { decoded in
                            output.append(contentsOf: decoded)
                            return action
                        }
                    }
                }
            }
            return (output, decoder.failureAtEnd == nil)
        } catch {
            return (output, false)
        }
    }
}
