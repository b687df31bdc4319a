// SPDX-License-Identifier: Apache-2.0
import Dispatch

/// The queue of the tests' handlers: the main queue belongs to the test runner.
public let callbackQueue = DispatchQueue(label: "tests.callbacks")
