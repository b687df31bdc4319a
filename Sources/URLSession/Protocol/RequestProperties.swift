// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewURLLoading

/// What ``URLProtocol`` stores with requests.
///
/// Foundation on Linux loses it whenever a request is copied, and each conversion between `NSMutableURLRequest` and `URLRequest` is a copy:
/// `property(forKey:in:)` would never find anything. So an object with properties becomes one of a subclass, whose copies have them, too. As
/// the object is the program's, that takes changing its class in place, which is possible because the subclass adds no storage. Whether it
/// works is tried once; if it does not, or where Foundation keeps the properties itself, they are Foundation's.
enum RequestProperties {
    private static let stored = Lock<[ObjectIdentifier: [String: Any]]>([:])

    /// Whether the properties are kept here.
    private static let isNeeded: Bool = {
        guard let url = URL(string: "about:blank") else { return false }
        let (key, probe) = ("curlew", NSMutableURLRequest(url: url))
        Base.setProperty(true, forKey: key, in: probe)
        guard Base.property(forKey: key, in: probe as URLRequest) == nil else { return false }
        let other = NSMutableURLRequest(url: url)
        guard adopt(other) else { return false }
        change(other) { $0[key] = true }
        var copy = other as URLRequest
        copy.httpMethod = "PUT"
        return own(forKey: key, in: copy) as? Bool == true && copy.url == url && copy.httpMethod == "PUT" && other.httpMethod == "GET"
    }()

    private typealias Base = CurlewURLLoading.URLProtocol

    static func value(forKey key: String, in request: URLRequest) -> Any? {
        isNeeded ? own(forKey: key, in: request) : Base.property(forKey: key, in: request)
    }

    static func set(_ value: Any?, forKey key: String, in request: NSMutableURLRequest) {
        if isNeeded, adopt(request) { return change(request) { $0[key] = value } }
        if let value {
            Base.setProperty(value, forKey: key, in: request)
        } else {
            Base.removeProperty(forKey: key, in: request)
        }
    }

    private static func own(forKey key: String, in request: URLRequest) -> Any? {
        let object = request as NSURLRequest
        return withExtendedLifetime(object) { stored.withLock { $0[ObjectIdentifier(object)]?[key] } }
    }

    private static func change(_ request: NSMutableURLRequest, _ change: (inout [String: Any]) -> Void) {
        stored.withLock { change(&$0[ObjectIdentifier(request), default: [:]]) }
    }

    /// Makes an object one whose copies have its properties; `false` for one of a program's own subclass.
    private static func adopt(_ request: NSMutableURLRequest) -> Bool {
        if request is PropertyRequest { return true }
        guard type(of: request) == NSMutableURLRequest.self else { return false }
        // The first word of each object of Swift's own is its class.
        Unmanaged.passUnretained(request).toOpaque().storeBytes(of: PropertyRequest.self, as: AnyClass.self)
        return true
    }

    /// A request with properties. Has no stored properties of its own, so that its objects are as large as those of its superclass.
    private final class PropertyRequest: NSMutableURLRequest {
        deinit {
            // Released after unlocking.
            withExtendedLifetime(stored.withLock { $0.removeValue(forKey: ObjectIdentifier(self)) }) {}
        }

        override func mutableCopy(with zone: NSZone? = nil) -> Any {
            let copy = super.mutableCopy(with: zone)
            guard let copy = copy as? NSMutableURLRequest, adopt(copy) else { return copy }
            stored.withLock { $0[ObjectIdentifier(copy)] = $0[ObjectIdentifier(self)] }
            return copy
        }

        override func copy(with zone: NSZone? = nil) -> Any { mutableCopy(with: zone) }

        /// Archived without the properties, as Foundation's.
        override var classForCoder: AnyClass { NSMutableURLRequest.self }
    }
}
