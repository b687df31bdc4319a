// SPDX-License-Identifier: Apache-2.0

extension StringProtocol {
    /// Whether both have the same bytes: texts are equal if they are canonically equivalent.
    @inlinable package func hasSameBytes(as other: some StringProtocol) -> Bool {
        // Contiguous bytes are compared several times as fast.
        utf8.withContiguousStorageIfAvailable { bytes in
            other.utf8.withContiguousStorageIfAvailable { others in
                guard bytes.count == others.count, let start = bytes.baseAddress, let other = others.baseAddress else {
                    return bytes.isEmpty && others.isEmpty
                }
                return memcmp(start, other, bytes.count) == 0
            }
        }.flatMap { $0 } ?? utf8.elementsEqual(other.utf8)
    }
}
