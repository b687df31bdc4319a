// SPDX-License-Identifier: Apache-2.0

/// A scalar type of the standard library, read straight from the tape.
protocol JSONPlainValue {
    static func read(_ decoder: JSONValueDecoder, at index: Int) throws(ValueFailure) -> Self
}

extension FixedWidthInteger {
    @inline(__always)
    static func read(_ decoder: JSONValueDecoder, at index: Int) throws(ValueFailure) -> Self { try decoder.tape.integer(at: index) }
}

extension Int: JSONPlainValue {}
extension Int8: JSONPlainValue {}
extension Int16: JSONPlainValue {}
extension Int32: JSONPlainValue {}
extension Int64: JSONPlainValue {}
extension UInt: JSONPlainValue {}
extension UInt8: JSONPlainValue {}
extension UInt16: JSONPlainValue {}
extension UInt32: JSONPlainValue {}
extension UInt64: JSONPlainValue {}
@available(macOS 15.0, iOS 18.0, tvOS 18.0, watchOS 11.0, visionOS 2.0, *)
extension Int128: JSONPlainValue {}
@available(macOS 15.0, iOS 18.0, tvOS 18.0, watchOS 11.0, visionOS 2.0, *)
extension UInt128: JSONPlainValue {}

extension Bool: JSONPlainValue {
    @inline(__always)
    static func read(_ decoder: JSONValueDecoder, at index: Int) throws(ValueFailure) -> Bool { try decoder.tape.bool(at: index) }
}

extension String: JSONPlainValue {
    @inline(__always)
    static func read(_ decoder: JSONValueDecoder, at index: Int) throws(ValueFailure) -> String { try decoder.tape.string(at: index) }
}

extension Double: JSONPlainValue {
    @inline(__always)
    static func read(_ decoder: JSONValueDecoder, at index: Int) throws(ValueFailure) -> Double { try decoder.double(at: index) }
}

extension Float: JSONPlainValue {
    @inline(__always)
    static func read(_ decoder: JSONValueDecoder, at index: Int) throws(ValueFailure) -> Float { try decoder.float(at: index) }
}
