"""Whether one function, written for several frameworks, is the same with the same derivatives, and which one is not."""

from multigrad.consistency.answers import Consistency as Consistency
from multigrad.consistency.check import check_consistency as check_consistency
from multigrad.consistency.report import ConsistencyReport as ConsistencyReport
