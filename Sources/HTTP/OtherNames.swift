// SPDX-License-Identifier: Apache-2.0

// Names by which other clients call things of Curlew: a program that uses one does not compile, and the message says what to write. Files of
// this name in other modules have theirs. (What a release had, and is to be replaced, is in `DeprecatedNames.swift`.)

extension HTTPHeaders {
    /// In Alamofire 5 ``update(_:)``, in other libraries ``append(_:)``.
    @available(*, unavailable, message: "use update(_:), which replaces fields of the name, or append(_:), which keeps them")
    public mutating func add(_ header: HTTPHeader) {}

    /// In Alamofire 5 ``update(name:value:)``, in SwiftNIO ``append(name:value:)``.
    @available(
        *, unavailable, message: "use update(name:value:), which replaces fields of the name, or append(name:value:), which keeps them"
    )
    public mutating func add(name: String, value: String) {}
}
