// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// The textual encoding of certificates and keys (RFC 7468).
enum PEM {
    /// The contents of all blocks with one of the labels. Blocks that are not base64 are skipped.
    static func blocks(_ labels: Set<String>, in text: Data) -> [Data] {
        var blocks: [Data] = []
        var begun: (label: Substring, base64: String)?
        // `isNewline` covers all line breaks; "\r\n" is one character of a String.
        for line in String(decoding: text, as: UTF8.self).split(whereSeparator: \.isNewline) {
            if let label = line.label(behind: "-----BEGIN ") {
                begun = (label, "")
            } else if let label = line.label(behind: "-----END ") {
                if let block = begun, block.label == label, labels.contains(String(label)), let data = Data(base64Encoded: block.base64) {
                    blocks.append(data)
                }
                begun = nil
            } else {
                begun?.base64 += line.filter { !$0.isWhitespace }
            }
        }
        return blocks
    }

    /// Encodes a block with 64 characters per line.
    static func block(_ label: String, _ data: Data) -> Data {
        Data("-----BEGIN \(label)-----\n".utf8) + data.base64EncodedData(options: [.lineLength64Characters, .endLineWithLineFeed])
            + Data("\n-----END \(label)-----\n".utf8)
    }
}

extension Substring {
    fileprivate func label(behind prefix: String) -> Substring? {
        guard let last = unicodeScalars.lastIndex(where: { !$0.properties.isWhitespace }) else { return nil }
        let line = self[...last]
        guard line.hasBytePrefix(prefix), line.hasByteSuffix("-----") else { return nil }
        return line.dropFirstScalars(prefix.unicodeScalars.count).dropLastScalars(5)
    }
}
