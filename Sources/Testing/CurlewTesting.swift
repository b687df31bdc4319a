// SPDX-License-Identifier: Apache-2.0

// LoopbackServer is in a module of its own, which sees none of the library, because the tests of every layer use it.
@_exported import CurlewLoopback
