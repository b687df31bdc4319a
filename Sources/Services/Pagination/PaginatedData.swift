// SPDX-License-Identifier: Apache-2.0

/// A page as a server describes it: a part of the data, and where in the whole it stands.
public protocol PaginatedData: Sendable {
    /// What a page holds: mostly an array.
    associatedtype DataType: Sendable

    /// What the page holds.
    var data: DataType { get }
    /// The page's number.
    var page: Int { get }
    /// The index of the page's first element in the whole.
    var from: Int { get }
    /// The index behind the page's last element.
    var to: Int { get }
    /// How many elements a page has at the most; the last one may have fewer.
    var chunk: Int { get }
    /// How many elements there are on all pages.
    var totalCount: Int { get }
    /// How many pages there are.
    var totalPageCount: Int { get }
    /// Whether the first page is number 0; `false`, the default, for 1.
    var zeroBasedPageIndex: Bool { get }
    /// Whether no page follows; by default, whether its number is that of the last page, or beyond it.
    var isLastPage: Bool { get }
}

extension PaginatedData {
    /// `false`.
    public var zeroBasedPageIndex: Bool { false }
    /// How many elements the page has: what lies between ``from`` and ``to``.
    public var count: Int { to - from }
    /// Whether ``page`` is the number of the last page, or beyond it.
    public var isLastPage: Bool { page >= totalPageCount - (zeroBasedPageIndex ? 1 : 0) }
}
