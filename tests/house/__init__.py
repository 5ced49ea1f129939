"""How the code is built, in numbers: ``python -m tests.house``. It reads syntax trees and imports none of the code."""
