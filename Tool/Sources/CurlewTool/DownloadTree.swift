// SPDX-License-Identifier: Apache-2.0
import Curlew

/// The files below a folder of a server, found by the links of its listings, for `dl --recursive`: those of the start's origin and below it.
struct DownloadTree {
    /// The most files and folders together.
    static let mostEntries = 10_000
    /// The largest listing, in bytes.
    static let largestListing = 16 << 20

    /// Why a link is not followed.
    enum Refusal: Int, CaseIterable {
        case elsewhere, above, query, deep, misleading, taken

        fileprivate func text(depth: Int) -> String {
            switch self {
            case .elsewhere: "to another origin"
            case .above: "not below the start"
            case .query: "with a query"
            case .deep: "deeper than --depth \(depth)"
            case .misleading: "with a name that leads elsewhere"
            case .taken: "with the name of another one"
            }
        }
    }

    /// A file or folder.
    struct Entry {
        let url: String
        /// The names below the start, as the server has them.
        let source: [String]
        /// The same as they are on disk.
        let names: [String]
        let isFolder: Bool
        var path: String { names.joined(separator: "/") }

        func isSame(as other: Entry) -> Bool {
            isFolder == other.isFolder && source.elementsEqual(other.source) { $0.utf8.elementsEqual($1.utf8) }
        }
    }

    /// The end of a search that has a reason of its own.
    struct Failure: Error {
        let outcome: Outcome
    }

    private let origin: HTTPOrigin?
    /// The parts of the path of the start, without percent-encoding; the first one is empty.
    private let base: [String]
    private let depth: Int
    /// By the bytes of their paths on disk: names that are only canonically equivalent are different files.
    private var taken: [[UInt8]: Entry] = [:]
    private(set) var files: [Entry] = []
    private(set) var refused: [Refusal: Int] = [:]
    /// The folders whose listing can't be had, with the reason.
    private(set) var failed: [(path: String, outcome: Outcome)] = []

    /// - Parameter start: the address of the first listing, after redirects: what is below its folder is below the start.
    /// - Returns: `nil` if the path is no text.
    init?(start: String, depth: Int) {
        guard let parts = URL(string: start).flatMap(Self.parts) else { return nil }
        origin = HTTPOrigin(url: start)
        base = parts.dropLast()
        self.depth = depth
    }

    // MARK: Search

    /// Finds all files.
    ///
    /// - Parameter load: returns the address and text of a listing.
    static func find(
        _ start: String, depth: Int, load: (_ url: String) async -> Result<(url: String, page: String), Failure>
    ) async throws(Failure) -> DownloadTree {
        let first = try await load(start).get()
        guard var tree = DownloadTree(start: first.url, depth: depth) else {
            throw Failure(outcome: Outcome(status: .usage, message: "\(RequestURL.shown(first.url)): the path is not text in UTF-8"))
        }
        var folders = try tree.take(first.page, at: first.url)[...]
        while let folder = folders.popFirst(), !Task.isCancelled {
            switch await load(folder.url) {
            case .success(let listing): folders += try tree.take(listing.page, at: listing.url)
            case .failure(let failure): tree.failed.append((folder.path, failure.outcome))
            }
        }
        return tree
    }

    /// Takes the links of a listing. Returns the new folders.
    mutating func take(_ page: String, at url: String) throws(Failure) -> [Entry] {
        var folders: [Entry] = []
        for link in ListingLinks.links(of: page) {
            switch resolve(link, at: url) {
            case .failure(let refusal)?: refused[refusal.reason, default: 0] += 1
            case .success(let entry)?:
                let key = Array(entry.path.utf8)
                if let other = taken[key] {
                    if !other.isSame(as: entry) { refused[.taken, default: 0] += 1 }
                    continue
                }
                guard taken.count < Self.mostEntries else {
                    throw Failure(
                        outcome: Outcome(
                            status: .transfer, message: "there are more than \(Self.mostEntries) files and folders; start lower"))
                }
                taken[key] = entry
                if !entry.isFolder {
                    files.append(entry)
                } else if entry.names.count < depth {
                    folders.append(entry)
                } else {
                    refused[.deep, default: 0] += 1
                }
            case nil: break
            }
        }
        return folders
    }

    private struct Refused: Error {
        let reason: Refusal
    }

    /// Finds what a link leads to; `nil` for the listing or the start themselves.
    private func resolve(_ link: String, at url: String) -> Result<Entry, Refused>? {
        let plain = String(link.prefixScalars { $0 != "#" })
        guard !plain.isEmpty else { return nil }
        guard let found = URL(string: plain, relativeTo: URL(string: url))?.absoluteURL, HTTPOrigin(url: found.absoluteString) == origin,
            found.user == nil
        else { return .failure(Refused(reason: .elsewhere)) }
        if plain == "?" || found.query != nil { return .failure(Refused(reason: .query)) }
        guard let parts = Self.parts(found) else { return .failure(Refused(reason: .misleading)) }
        guard parts.starts(with: base, by: { $0.utf8.elementsEqual($1.utf8) }), parts.count > base.count else {
            return .failure(Refused(reason: .above))
        }
        var rest = Array(parts.dropFirst(base.count))
        let isFolder = rest.last == ""
        if isFolder { rest.removeLast() }
        guard !rest.isEmpty else { return nil }
        let names = rest.compactMap(Self.safe)
        guard names.count == rest.count else { return .failure(Refused(reason: .misleading)) }
        return .success(Entry(url: found.absoluteString, source: rest, names: names, isFolder: isFolder))
    }

    /// The parts of a URL's path, without percent-encoding; `nil` if they are no text.
    private static func parts(_ url: URL) -> [String]? {
        let path = url.path(percentEncoded: true)
        let parts = (path.isEmpty ? "/" : path).splitScalars(separator: "/", omittingEmptySubsequences: false)
        let decoded = parts.compactMap { String($0).removingPercentEncoding }
        return decoded.count == parts.count ? decoded : nil
    }

    /// The name of a file or folder as a download has it; `nil` if it leads elsewhere.
    private static func safe(_ name: String) -> String? {
        guard name.isFileName, let url = URL(string: "http://localhost/\(RequestURL.escaped(name))") else { return nil }
        return SuggestedFileName.name(url: url)
    }

    // MARK: Report

    /// What is said of the links that are not followed; `nil` if all are.
    var report: String? {
        guard !refused.isEmpty else { return nil }
        let counts = Refusal.allCases.compactMap { reason in refused[reason].map { "\($0) \(reason.text(depth: depth))" } }
        let total = refused.values.reduce(0, +)
        return "\(total) link\(total == 1 ? "" : "s") not followed: \(counts.joined(separator: ", "))"
    }
}

// MARK: - Listings

extension DownloadTree {
    /// Loads a listing.
    static func listing(
        of url: String, headers: HTTPHeaders, retrier: PrintedRetries, with manager: SessionManager
    ) async -> Result<(url: String, page: String), Failure> {
        var options = RequestOptions()
        options.maximumBodySize = largestListing
        let request = manager.request(url, headers: headers, interceptor: retrier, options: options).validate(statusCode: 200..<300)
        let response = await request.serializingString().response
        let place = RequestURL.shown(url)
        func failure(_ status: ExitStatus, _ reason: String) -> Result<(url: String, page: String), Failure> {
            .failure(Failure(outcome: Outcome(status: status, message: "\(place): \(reason)")))
        }
        let head = response.response
        do {
            let page = try response.result.get()
            let type = head?.value(forHTTPHeaderField: "Content-Type")
            guard MarkupPainter.isMarkup(type) else {
                return failure(.transfer, "no listing of a folder, but \(type.map(\.quoted) ?? "of no type")")
            }
            return .success((head?.url?.absoluteString ?? url, page))
        } catch {
            if let location = head?.value(forHTTPHeaderField: "Location"), head.map({ (300..<400).contains($0.statusCode) }) == true {
                return failure(.redirect, "redirects to \(RequestURL.shown(location)), which is of another origin")
            }
            let outcome = Outcome(error)
            return failure(outcome.status, outcome.message ?? "failed")
        }
    }

    /// Has redirects to other origins not followed.
    static func confine(_ manager: SessionManager, to url: String) {
        let origin = HTTPOrigin(url: url)
        manager.delegate.onRedirect { _, _, proposed in
            HTTPOrigin(url: proposed.url?.absoluteString ?? "") == origin ? proposed : nil
        }
    }
}
