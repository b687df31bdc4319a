// SPDX-License-Identifier: Apache-2.0

/// The format and size of an image, read from its first bytes.
public struct ImageHeader: Sendable, Hashable {
    /// The format of an image.
    ///
    /// Later versions may add cases, so a `switch` needs a `default`.
    public enum Format: String, Sendable, Hashable {
        /// Portable Network Graphics (RFC 2083).
        case png
        /// JPEG (ITU-T T.81).
        case jpeg
        /// Graphics Interchange Format.
        case gif
        /// Windows bitmap.
        case bmp
        /// WebP (RFC 9649).
        case webp
        /// Tagged Image File Format (RFC 3302).
        case tiff
        /// Windows icon.
        case ico
    }

    /// The format.
    public let format: Format
    /// The width in pixels.
    public let width: Int
    /// The height in pixels.
    public let height: Int
    /// The image's bytes. Only the header has been checked.
    public let data: Data

    /// Reads the header; `nil` if the bytes are not an image of these formats, or end within the header.
    package init?(_ data: Data) {
        let reader = HeaderReader(data)
        guard let (format, width, height) = reader.read(), width > 0, height > 0 else { return nil }
        (self.format, self.width, self.height, self.data) = (format, width, height, data)
    }
}

/// Reads numbers from bytes that may end anywhere.
private struct HeaderReader {
    private let bytes: Data

    init(_ data: Data) {
        // Offsets below assume indices from 0.
        bytes = data.startIndex == 0 ? data : Data(data)
    }

    func read() -> (ImageHeader.Format, Int, Int)? {
        if starts("\u{89}PNG\r\n\u{1A}\n".unicodeScalars.map { UInt8($0.value) }) { return pair(.png, big(16, 4), big(20, 4)) }
        if starts([0xFF, 0xD8, 0xFF]) { return jpeg() }
        if starts(Array("GIF87a".utf8)) || starts(Array("GIF89a".utf8)) { return pair(.gif, little(6, 2), little(8, 2)) }
        if starts(Array("BM".utf8)) { return bmp() }
        if starts(Array("RIFF".utf8)), has(Array("WEBP".utf8), at: 8) { return webp() }
        if starts([0x49, 0x49, 0x2A, 0]) { return tiff(little) }
        if starts([0x4D, 0x4D, 0, 0x2A]) { return tiff(big) }
        if starts([0, 0, 1, 0]) { return ico() }
        return nil
    }

    // MARK: Formats

    private func bmp() -> (ImageHeader.Format, Int, Int)? {
        // The oldest form of the header has two-byte dimensions.
        if little(14, 4) == 12 { return pair(.bmp, little(18, 2), little(20, 2)) }
        // A negative height means that the rows run from top to bottom.
        guard let height = little(22, 4) else { return nil }
        return pair(.bmp, little(18, 4), abs(Int(Int32(truncatingIfNeeded: height))))
    }

    private func ico() -> (ImageHeader.Format, Int, Int)? {
        // 0 means 256.
        pair(.ico, little(6, 1).map { $0 == 0 ? 256 : $0 }, little(7, 1).map { $0 == 0 ? 256 : $0 })
    }

    /// The frame header (ITU-T T.81, B.2.2) may follow any number of other segments.
    private func jpeg() -> (ImageHeader.Format, Int, Int)? {
        var position = 2
        while let marker = big(position, 2), marker >> 8 == 0xFF {
            let code = marker & 0xFF
            if code == 0xFF {
                position += 1
            } else if (0xC0...0xCF).contains(code), ![0xC4, 0xC8, 0xCC].contains(code) {
                return pair(.jpeg, big(position + 7, 2), big(position + 5, 2))
            } else if code == 0x01 || (0xD0...0xD8).contains(code) {
                position += 2
            } else {
                guard let length = big(position + 2, 2), length >= 2 else { return nil }
                position += 2 + length
            }
        }
        return nil
    }

    private func webp() -> (ImageHeader.Format, Int, Int)? {
        if has(Array("VP8X".utf8), at: 12) { return pair(.webp, little(24, 3).map { $0 + 1 }, little(27, 3).map { $0 + 1 }) }
        if has(Array("VP8 ".utf8), at: 12) {
            guard has([0x9D, 0x01, 0x2A], at: 23) else { return nil }
            return pair(.webp, little(26, 2).map { $0 & 0x3FFF }, little(28, 2).map { $0 & 0x3FFF })
        }
        guard has(Array("VP8L".utf8), at: 12), has([0x2F], at: 20), let bits = little(21, 4) else { return nil }
        return pair(.webp, (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1)
    }

    /// Tags 256 and 257 of the first directory, of two or four bytes.
    private func tiff(_ number: (Int, Int) -> Int?) -> (ImageHeader.Format, Int, Int)? {
        guard let directory = number(4, 4), let count = number(directory, 2) else { return nil }
        var (width, height): (Int?, Int?)
        for index in 0..<count {
            let entry = directory + 2 + 12 * index
            guard let tag = number(entry, 2), let type = number(entry + 2, 2) else { return nil }
            let value = number(entry + 8, type == 3 ? 2 : 4)
            if tag == 256 { width = value }
            if tag == 257 { height = value }
        }
        return pair(.tiff, width, height)
    }

    // MARK: Bytes

    private func pair(_ format: ImageHeader.Format, _ width: Int?, _ height: Int?) -> (ImageHeader.Format, Int, Int)? {
        guard let width, let height else { return nil }
        return (format, width, height)
    }

    private func starts(_ prefix: [UInt8]) -> Bool { has(prefix, at: 0) }

    private func has(_ part: [UInt8], at offset: Int) -> Bool {
        bytes.count >= offset + part.count && bytes[offset..<offset + part.count].elementsEqual(part)
    }

    private func big(_ offset: Int, _ count: Int) -> Int? { slice(offset, count)?.reduce(0) { $0 << 8 | Int($1) } }

    private func little(_ offset: Int, _ count: Int) -> Int? { slice(offset, count)?.reversed().reduce(0) { $0 << 8 | Int($1) } }

    private func slice(_ offset: Int, _ count: Int) -> Data? {
        offset >= 0 && offset <= bytes.count - count ? bytes[offset..<offset + count] : nil
    }
}
