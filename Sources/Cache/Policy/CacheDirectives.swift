// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// The directives of a message's `Cache-Control` fields (RFC 9111, section 5.2; RFC 5861; RFC 8246).
///
/// Of repeated directives the first counts (section 4.2.1), and an argument that is no number of seconds counts as 0, so that the response
/// is stale. Any bytes can be parsed: they come from a peer. Fuzzed (`FuzzTests`, `cache-control`).
package struct CacheDirectives: Sendable, Hashable {
    /// Directives without an argument, and whether one with an argument is present.
    package struct Names: OptionSet, Sendable, Hashable {
        package let rawValue: UInt16
        package init(rawValue: UInt16) { self.rawValue = rawValue }

        package static let noCache = Names(rawValue: 1 << 0)
        package static let noStore = Names(rawValue: 1 << 1)
        package static let mustRevalidate = Names(rawValue: 1 << 2)
        package static let mustUnderstand = Names(rawValue: 1 << 3)
        package static let isPublic = Names(rawValue: 1 << 4)
        package static let isPrivate = Names(rawValue: 1 << 5)
        package static let immutable = Names(rawValue: 1 << 6)
        package static let onlyIfCached = Names(rawValue: 1 << 7)
    }

    /// The number to which larger ones are clamped: 2^31 seconds (RFC 9111, section 1.2.2).
    package static let longest = 2_147_483_648

    /// The directives that are present.
    package private(set) var names: Names = []
    /// The freshness lifetime of a response, or the greatest age that a request accepts, in seconds.
    package private(set) var maxAge: Int?
    /// The staleness in seconds that a request accepts; ``longest`` if the directive has no argument.
    package private(set) var maxStale: Int?
    /// The freshness in seconds that a request wants to be left.
    package private(set) var minFresh: Int?
    /// The seconds for which a stale response may be used while it is validated (RFC 5861, section 3).
    package private(set) var staleWhileRevalidate: Int?
    /// The seconds for which a stale response may be used in place of an error (RFC 5861, section 4).
    package private(set) var staleIfError: Int?

    /// The fields, in lower case, that a stored response delivers only after its validation: `no-cache` with an argument (section 5.2.2.4).
    package private(set) var noCacheFields: [String] = []

    /// Creates an empty set of directives.
    package init() {}

    /// Parses the directives of a message; without `Cache-Control`, `Pragma: no-cache` counts as `no-cache` (section 5.4).
    package init(_ headers: HTTPHeaders) {
        var hasField = false
        var pragma: String?
        for field in headers {
            switch field.name.utf8.count {
            case 13 where field.isNamed("Cache-Control"):
                hasField = true
                parse(field.value)
            case 6 where field.isNamed("Pragma"): pragma = field.value
            default: break
            }
        }
        if !hasField, let pragma, FieldParser.members(of: pragma).contains(where: { $0.equalsIgnoringASCIICase("no-cache") }) {
            names.insert(.noCache)
        }
    }

    /// Whether all the given directives are present.
    @inline(__always)
    package func has(_ wanted: Names) -> Bool { names.isSuperset(of: wanted) }

    /// Adds the directives of a field line.
    package mutating func parse(_ value: String) {
        FieldParser.forEachMember(of: value[...]) { member in
            let (name, argument) = FieldParser.pair(member)
            add(name.lowercased(), argument)
        }
    }

    private mutating func add(_ name: String, _ argument: String?) {
        switch name {
        case "no-cache":
            let fields = argument.map { FieldParser.members(of: $0).map { $0.lowercased() } } ?? []
            if fields.isEmpty { names.insert(.noCache) } else { noCacheFields += fields }
        // A list of fields that only private caches may store means nothing to one (section 5.2.2.7).
        case "private": names.insert(.isPrivate)
        case "no-store": names.insert(.noStore)
        case "must-revalidate": names.insert(.mustRevalidate)
        case "must-understand": names.insert(.mustUnderstand)
        case "public": names.insert(.isPublic)
        case "immutable": names.insert(.immutable)
        case "only-if-cached": names.insert(.onlyIfCached)
        case "max-age": if maxAge == nil { maxAge = Self.seconds(argument) }
        case "max-stale": if maxStale == nil { maxStale = argument.map { Self.seconds($0) } ?? Self.longest }
        case "min-fresh": if minFresh == nil { minFresh = Self.seconds(argument) }
        case "stale-while-revalidate": if staleWhileRevalidate == nil { staleWhileRevalidate = Self.seconds(argument) }
        case "stale-if-error": if staleIfError == nil { staleIfError = Self.seconds(argument) }
        default: break
        }
    }

    private static func seconds(_ argument: String?) -> Int { argument.flatMap { deltaSeconds($0) } ?? 0 }

    /// Parses `delta-seconds` (RFC 9111, section 1.2.2), clamped; `nil` for anything else.
    package static func deltaSeconds(_ text: some StringProtocol) -> Int? {
        guard !text.isEmpty else { return nil }
        var value = 0
        for byte in text.utf8 {
            guard byte.isASCIIDigit else { return nil }
            value = min(value * 10 + Int(byte - 0x30), longest)
        }
        return value
    }
}
