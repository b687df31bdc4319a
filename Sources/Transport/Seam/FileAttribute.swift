// SPDX-License-Identifier: Apache-2.0
import CCurlew
import CurlewHTTP

/// An extended attribute of open files. Not all file systems have them.
package enum FileAttribute {
    /// The longest value that is read, in bytes.
    private static let largestValue = 4096

    /// Returns the value; `nil` if the file has no such attribute, its value is longer than 4 KiB, or its file system has no attributes.
    package static func value(of name: String, in descriptor: Int32) -> Data? {
        var value = Data(count: largestValue)
        let length = value.withUnsafeMutableBytes { ccurlew_get_attribute(descriptor, name, $0.baseAddress, $0.count) }
        return length >= 0 ? value.prefix(Int(length)) : nil
    }

    /// Sets the value; returns `false` if the file system has no attributes, or no space for this one.
    @discardableResult
    package static func set(_ value: Data, of name: String, in descriptor: Int32) -> Bool {
        value.withUnsafeBytes { ccurlew_set_attribute(descriptor, name, $0.baseAddress, $0.count) } == 0
    }
}
