// SPDX-License-Identifier: Apache-2.0
#if Lifecycle
@_exported import CurlewCore
#endif
