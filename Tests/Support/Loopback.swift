// SPDX-License-Identifier: Apache-2.0

// The server of CurlewTesting, by the names that the tests have always used; with it Foundation and the C library.
@_exported import CurlewLoopback
