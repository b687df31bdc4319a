// SPDX-License-Identifier: Apache-2.0

// What differs between platforms is imported here, once.
#if canImport(FoundationEssentials)
@_exported import FoundationEssentials
#else
@_exported import Foundation
#endif
