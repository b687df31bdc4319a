// SPDX-License-Identifier: Apache-2.0

/// The content codings that the library decodes (RFC 9110, section 8.4), as the package's traits say.
enum ContentCodings {
    static var known: [String] {
        var names = ["gzip", "deflate"]
        #if Brotli
        names.append("br")
        #endif
        #if Zstd
        names.append("zstd")
        #endif
        return names
    }

    /// Returns an `Accept-Encoding` without the codings that can't be decoded: a pasted command of a browser names what only that has.
    static func reduced(_ value: String) -> String {
        func isKept(_ member: Substring) -> Bool {
            let parts = member.splitScalars(separator: ";").map { $0.trimmingCharacters(in: .whitespaces).lowercased() }
            // What is refused, as by *;q=0, is never a coding of the response.
            let isRefused = parts.dropFirst().contains { $0.hasBytePrefix("q=0") && $0.utf8.dropFirst(3).allSatisfy(".0".utf8.contains) }
            return isRefused || parts.first.map { (known + ["x-gzip", "identity"]).contains($0) } ?? false
        }
        let kept = value.splitScalars(separator: ",").filter(isKept)
        return kept.isEmpty ? "identity" : kept.joined(separator: ",").trimmingCharacters(in: .whitespaces)
    }
}
