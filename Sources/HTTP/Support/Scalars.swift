// SPDX-License-Identifier: Apache-2.0

// Where a delimiter of a protocol, a path, a shell or a format counts, bytes or Unicode scalars are compared. A Character takes the marks
// that follow it, so that "/" before U+0301 or U+200D is no "/", and equals what is canonically equivalent, as U+037E equals ";".
//
// Inlinable, because a generic function of another module takes several calls for each byte.

extension StringProtocol where SubSequence == Substring {
    /// The parts between the occurrences of a scalar, as by `split(separator:)`, which compares Characters.
    @inlinable package func splitScalars(
        separator: Unicode.Scalar, maxSplits: Int = .max, omittingEmptySubsequences: Bool = true
    ) -> [Substring] {
        splitScalars(maxSplits: maxSplits, omittingEmptySubsequences: omittingEmptySubsequences) { $0 == separator }
    }

    /// The parts between the scalars for which the predicate is true.
    @inlinable package func splitScalars(
        maxSplits: Int = .max, omittingEmptySubsequences: Bool = true, whereSeparator isSeparator: (Unicode.Scalar) -> Bool
    ) -> [Substring] {
        unicodeScalars.split(maxSplits: maxSplits, omittingEmptySubsequences: omittingEmptySubsequences, whereSeparator: isSeparator)
            .map { self[$0.startIndex..<$0.endIndex] }
    }

    /// The text before the first scalar for which the predicate is false.
    @inlinable package func prefixScalars(while predicate: (Unicode.Scalar) -> Bool) -> Substring {
        self[..<(unicodeScalars.firstIndex { !predicate($0) } ?? endIndex)]
    }

    /// The text from the first scalar for which the predicate is false.
    @inlinable package func dropScalars(while predicate: (Unicode.Scalar) -> Bool) -> Substring {
        self[(unicodeScalars.firstIndex { !predicate($0) } ?? endIndex)...]
    }

    /// The text without the scalars at both ends for which the predicate is true.
    @inlinable package func trimmingScalars(while predicate: (Unicode.Scalar) -> Bool) -> Substring {
        let rest = dropScalars(while: predicate)
        guard let last = rest.unicodeScalars.lastIndex(where: { !predicate($0) }) else { return rest }
        return rest[..<rest.unicodeScalars.index(after: last)]
    }

    /// The text without its first scalars, also if marks follow them.
    @inlinable package func dropFirstScalars(_ count: Int = 1) -> Substring {
        self[(unicodeScalars.index(startIndex, offsetBy: count, limitedBy: endIndex) ?? endIndex)...]
    }

    /// The text without its last scalars.
    @inlinable package func dropLastScalars(_ count: Int = 1) -> Substring {
        self[..<(unicodeScalars.index(endIndex, offsetBy: -count, limitedBy: startIndex) ?? startIndex)]
    }

    /// The text after the scalar at an index.
    @inlinable package func suffix(afterScalarAt index: Index) -> Substring { self[unicodeScalars.index(after: index)...] }

    /// The scalars for which the predicate is true.
    @inlinable package func filterScalars(_ isIncluded: (Unicode.Scalar) -> Bool) -> String {
        var result = String.UnicodeScalarView()
        for scalar in unicodeScalars where isIncluded(scalar) { result.append(scalar) }
        return String(result)
    }

    /// The first place where the scalars of another text are.
    @inlinable package func firstScalarRange(of other: String) -> Range<Index>? {
        guard let first = other.utf8.first else { return startIndex..<startIndex }
        var start = startIndex
        while let index = utf8[start...].firstIndex(of: first) {
            if utf8[index...].starts(with: other.utf8) { return index..<utf8.index(index, offsetBy: other.utf8.count) }
            start = utf8.index(after: index)
        }
        return nil
    }

    /// Whether the scalars of another text are in this one.
    @inlinable package func containsScalars(of other: String) -> Bool { firstScalarRange(of: other) != nil }

    /// The text with each occurrence of the scalars of a text replaced.
    @inlinable package func replacingScalars(_ old: String, with new: String) -> String {
        var (result, rest) = ("", self[...])
        while !old.isEmpty, let range = rest.firstScalarRange(of: old) {
            result += rest[..<range.lowerBound]
            result += new
            rest = rest[range.upperBound...]
        }
        return result + rest
    }
}

extension StringProtocol {
    /// Whether the bytes of the text begin with those of another one; `hasPrefix` compares Characters.
    @inlinable package func hasBytePrefix(_ other: some StringProtocol) -> Bool { utf8.starts(with: other.utf8) }

    /// Whether the bytes of the text end with those of another one; `hasSuffix` compares Characters.
    @inlinable package func hasByteSuffix(_ other: some StringProtocol) -> Bool { utf8.suffix(other.utf8.count).elementsEqual(other.utf8) }

    /// Whether the text has digits of ASCII only, and at least one.
    @inlinable package var isAllDigits: Bool { !isEmpty && utf8.allSatisfy { $0.isASCIIDigit } }
}

extension UInt8 {
    /// Whether the byte is a digit of ASCII.
    @inlinable @inline(__always)
    package var isASCIIDigit: Bool { self &- 0x30 < 10 }
}

extension String {
    /// Whether the text names a file of a directory and leads nowhere else: by its bytes, as the file system reads it.
    package var isFileName: Bool { !isEmpty && self != "." && self != ".." && utf8.allSatisfy { $0 != UInt8(ascii: "/") && $0 != 0 } }

    /// The text as a quoted string (RFC 9110, section 5.6.4), with quotation marks and backslashes escaped. Control characters are left,
    /// so that a field with them is invalid.
    package var quotedString: String {
        "\"" + replacingScalars("\\", with: "\\\\").replacingScalars("\"", with: "\\\"") + "\""
    }
}
