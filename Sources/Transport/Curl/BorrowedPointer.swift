// SPDX-License-Identifier: Apache-2.0

/// The pointer to an object that a C library keeps without retaining it, and passes to callbacks. The object has to live for as long as the
/// library may call.
@inline(__always) func borrowedPointer(to object: AnyObject) -> UnsafeMutableRawPointer { Unmanaged.passUnretained(object).toOpaque() }

extension UnsafeMutableRawPointer {
    /// Passes the object of a ``borrowedPointer(to:)`` to a closure, neither retained nor released, as a callback does for each event.
    @inline(__always) func borrow<Object: AnyObject, Result>(_: Object.Type, _ body: (Object) -> Result) -> Result {
        Unmanaged<Object>.fromOpaque(self)._withUnsafeGuaranteedRef(body)
    }

    /// The object of a ``borrowedPointer(to:)``, retained.
    @inline(__always) func object<Object: AnyObject>(_: Object.Type) -> Object {
        Unmanaged<Object>.fromOpaque(self).takeUnretainedValue()
    }
}
