// SPDX-License-Identifier: Apache-2.0

/// Values of the layers above Core: at most one of each type.
package struct LayerValues: Sendable {
    private var values: [ObjectIdentifier: any Sendable] = [:]

    /// The value of a type; `nil` if none was set.
    package subscript<Value: Sendable>(_ type: Value.Type) -> Value? {
        get { values[ObjectIdentifier(type)] as? Value }
        set { values[ObjectIdentifier(type)] = newValue }
    }

    /// The value of a type, or the given one if none was set.
    package subscript<Value: Sendable>(_ type: Value.Type, default value: @autoclosure () -> Value) -> Value {
        get { self[type] ?? value() }
        set { self[type] = newValue }
    }
}
