// SPDX-License-Identifier: Apache-2.0
public import CurlewCore
import CurlewEncoding
public import CurlewHTTP

/// The metadata of a protected resource (RFC 9728): where tokens for it come from.
public struct OAuthResource: Sendable, Hashable, Codable {
    private enum CodingKeys: String, CodingKey {
        case identifier = "resource"
        case authorizationServers = "authorization_servers"
        case scopes = "scopes_supported"
        case methods = "bearer_methods_supported"
        case name = "resource_name"
        case requiresBoundTokens = "dpop_bound_access_tokens_required"
    }

    /// The resource's identifier, a URL: what grants have as `resource`.
    public let identifier: String
    /// The issuers of tokens for it.
    public let authorizationServers: [String]?
    /// Scopes that it knows.
    public let scopes: [String]?
    /// Where it accepts tokens: `header`, `body`, `query`.
    public let methods: [String]?
    /// Its name for people.
    public let name: String?
    /// Whether tokens have to be bound to a key (RFC 9449).
    public let requiresBoundTokens: Bool?

    /// Fetches the metadata of a resource: from the URL in a challenge, if a response of status 401 has one (`resource_metadata`), else from
    /// the well-known place.
    ///
    /// - Parameters:
    ///   - url: the URL of the resource, or of a request to it. The metadata have to be of that URL, or of a directory above it.
    ///   - challenge: the fields of a response to such a request.
    ///   - manager: sends the request, which follows no redirect. Not one whose interceptor waits for the tokens.
    /// - Throws: ``OAuthError/invalidMetadata(reason:)``; ``CurlewError`` for a failed transfer.
    public static func metadata(
        of url: String, challenge: HTTPHeaders = [:], with manager: SessionManager = .default
    ) async throws -> OAuthResource {
        let challenges = AuthenticationChallenge.challenges(in: challenge.values(for: "WWW-Authenticate"))
        let named = challenges.lazy.compactMap { $0.parameters["resource_metadata"] }.first
        let plain = String(url.prefixScalars { $0 != "?" && $0 != "#" })
        let root = Self.root(of: plain).withoutLastSlash
        var places = try named.map { [$0] } ?? WellKnown.inserting(["oauth-protected-resource"], into: plain)
        if named == nil, !root.hasSameBytes(as: plain.withoutLastSlash) {
            places += try WellKnown.inserting(["oauth-protected-resource"], into: root)
        }
        for place in places {
            guard let metadata = try await document(at: place, with: manager) else { continue }
            guard metadata.covers(plain) else { throw OAuthError.invalidMetadata(reason: "they are of another resource") }
            return metadata
        }
        throw OAuthError.invalidMetadata(reason: "the resource has no document")
    }

    /// Fetches a document; `nil` if there is none.
    private static func document(at url: String, with manager: SessionManager) async throws -> OAuthResource? {
        guard url.isProtectedURL else { throw OAuthError.invalidMetadata(reason: "they are neither at an https URL nor on this computer") }
        var redirects = RedirectPolicy()
        redirects.limit = 0
        let options = RequestOptions(deadline: .seconds(30), redirects: redirects, maximumBodySize: 1 << 20)
        let response = await manager.request(url, headers: [.accept("application/json")], options: options).serializingData().response
        let body = try response.result.get()
        guard response.response?.statusCode == 200 else { return nil }
        guard let metadata = try? JSONDecoder().decode(OAuthResource.self, from: body) else {
            throw OAuthError.invalidMetadata(reason: "the document at \(Redaction.current.url(url)) is not one of metadata")
        }
        return metadata
    }

    private static func root(of url: String) -> String {
        guard let scheme = url.firstScalarRange(of: "://") else { return url }
        return url[..<scheme.upperBound] + String(url[scheme.upperBound...].prefixScalars { $0 != "/" })
    }

    /// Whether a URL is the resource's identifier, or below it in the same origin.
    private func covers(_ url: String) -> Bool {
        let (url, own) = (url.withoutLastSlash, identifier.withoutLastSlash)
        guard let origin = HTTPOrigin(url: own), HTTPOrigin(url: url) == origin else { return false }
        let path = url.dropFirstScalars(Self.root(of: url).unicodeScalars.count)
        let prefix = own.dropFirstScalars(Self.root(of: own).unicodeScalars.count)
        return path.hasSameBytes(as: prefix) || path.hasBytePrefix("\(prefix)/")
    }
}
