// SPDX-License-Identifier: Apache-2.0

/// A page as the server describes it: a part of the data, and its position in the whole.
public protocol PaginatedData: Sendable {
    /// The type of a page's data: usually an array.
    associatedtype DataType: Sendable

    /// The page's data.
    var data: DataType { get }
    /// The page's number.
    var page: Int { get }
    /// The index of the page's first element in the whole collection.
    var from: Int { get }
    /// The index after the page's last element.
    var to: Int { get }
    /// The maximum number of elements per page; the last page may have fewer.
    var chunk: Int { get }
    /// The number of elements on all pages.
    var totalCount: Int { get }
    /// The number of pages.
    var totalPageCount: Int { get }
    /// Whether pages are numbered from 0; `false`, the default, if from 1.
    var zeroBasedPageIndex: Bool { get }
    /// Whether this is the last page; by default, whether its number is at or beyond that of the last page.
    var isLastPage: Bool { get }
}

extension PaginatedData {
    /// `false`: pages are numbered from 1.
    public var zeroBasedPageIndex: Bool { false }
    /// The number of elements on the page: the difference between ``from`` and ``to``.
    public var count: Int { to - from }
    /// Whether ``page`` is at or beyond the number of the last page.
    public var isLastPage: Bool { page >= totalPageCount - (zeroBasedPageIndex ? 1 : 0) }
}
