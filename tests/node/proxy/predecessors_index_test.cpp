// Which test answers which behaviour and defect of the proxies before this one. A: the `fault` engine (behaviours its
// tests fix, and its defects); B: Toxiproxy (defects reproduced, and what its users asked for). That every named test
// exists is a test itself.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace {

struct Item {
  std::string_view what;
  std::vector<std::string_view> tests;
};

const std::vector<Item> index_of_predecessors{
    // --- A11: behaviours of `fault` ---
    {"A11 chained UDP faults are all counted", {"Predecessors.ChainedDatagramFaultsAreAllCounted"}},
    {"A11 byte counts both ways", {"EngineStream.CarriesBothWaysAndSaysHowMuch"}},
    {"A11 completed records are streamed, not retained",
     {"EngineStream.CarriesBothWaysAndSaysHowMuch", "Predecessors.EndedConnectionsLeaveNothingBehind"}},
    {"A11 a full event channel never blocks",
     {"EngineCrowd.TheDataPathDoesNotWaitForTheHookAndWhatIsDroppedIsCounted"}},
    {"A11 a host name as upstream", {"EngineStream.IPv6AndNames", "EngineDatagrams.IPv6AndNames"}},
    {"A11 latency activates on an existing connection",
     {"EngineFaults.LatencyOnAnOpenConnectionFromTheArrivalOfTheBytes"}},
    {"A11 blackhole off: the pending bytes arrive",
     {"EngineFaults.AStalledBlackholeOnAnOpenConnectionGivesBackPressureAndHeals"}},
    {"A11 reset of an existing idle connection", {"EngineFaults.ResetOfIdleConnectionsOnEitherSide"}},
    {"A11 an invalid update leaves active faults untouched", {"EngineStream.AnInvalidSetLeavesAllLinksAsTheyWere"}},
    {"A11 latency of the first bytes of a flow only", {"StreamChain.FirstBytesAreDelayedOnceAndThenNothingIsInTheWay"}},
    {"A11 shutdown interrupts blackholes and long latencies",
     {"EngineCrowd.StoppingInterruptsLongDelaysAndBlackholes"}},
    {"A11 each blackholed direction is counted once", {"Predecessors.EachBlackholedDirectionIsCountedOnce"}},
    {"A11 a reset by a fault is no failure", {"Predecessors.AResetOfALiveConnectionIsAResetOnBothSidesAndNoFailure"}},
    {"A11 probability 0 never, 1 always",
     {"Predecessors.ProbabilityOneStrikesEveryoneAndZeroNobody", "EngineFaults.ResetWithProbabilityZeroResetsNobody"}},
    {"A11 invalid values are rejected", {"Faults.BadValuesAreNamedWithTheirPlaceAndWhatWouldDo"}},
    {"A11 bandwidth of 10 B/s: the second byte comes 75 ms later or more",
     {"Predecessors.TheSecondByteAtTenBytesASecond", "Pacer.TenBytesASecondTakeATenthEach"}},
    {"A11 a fault is isolated to its proxy", {"Predecessors.AFaultStaysOnItsLink"}},
    {"A11 bad listen and bad upstream are distinct errors", {"EngineStream.BadLinksAreRefusedWithWhatWouldDo"}},
    {"A11 an unreachable upstream: end, counted, category",
     {"EngineStream.AnUpstreamThatRefusesIsAnEndForTheClientAndNoHarmToOthers"}},
    {"A11 phases reconfigure a live connection", {"EngineStream.BytesArriveAsTheyWereWhileFaultsComeAndGo"}},
    {"A11 counters equal the sum of records", {"EngineCrowd.CountersAreTheSumsOfTheEvents"}},
    // --- A12: its defects ---
    {"A12-1 latency is charged from the arrival of the bytes, and said as it was",
     {"Predecessors.LatencyCountsFromTheArrivalWhateverTheIdleTime",
      "StreamChain.AnIdleTimeBeforeTheBytesDoesNotShortenTheirDelay"}},
    {"A12-2 bandwidth within 2 %",
     {"Predecessors.BandwidthIsWithinTwoPercentFromAKilobyteToTwoHundredMegabytesASecond",
      "StreamChain.BandwidthTakesExactlySizeOverRate"}},
    {"A12-3 a seed, and the same decisions from it",
     {"EngineFaults.TheSameSeedHitsTheSameConnections", "Selectors.TheSameSeedDecidesTheSameAndNeighboursChangeNothing",
      "DatagramChain.TheSameSeedLosesTheSame"}},
    {"A12-4 UDP: loss, duplication, reordering, corruption, bandwidth, sessions",
     {"DatagramChain.IndependentLossHasItsRate", "DatagramChain.GilbertAndElliottLoseInBurstsOfTheRightLength",
      "DatagramChain.DuplicatesAreCopies", "DatagramChain.ReorderLetsTheGapPassOrItsTime",
      "DatagramChain.CorruptAndTruncateKeepAndCutSizes", "DatagramChain.BandwidthPacesAndDropsFromTheTail",
      "EngineDatagrams.AClientKeepsItsUpstreamSocketAndGetsManyReplies"}},
    {"A12-5 TCP: connect-time faults, nth and byte triggers, peers, corruption, truncation, slow close, both sides",
     {"EngineFaults.RefuseIsARealRefusalAndHeals", "EngineFaults.HangConnectUntilItIsRemoved",
      "EngineFaults.SlowAccept", "EngineFaults.ResetAfterAcceptTheUpstreamHearsNothing",
      "Selectors.DirectionConnectionChunksAndBytes", "EngineFaults.PeersAreSelectedByAddress",
      "StreamChain.BitsFlipAtTheirOffsetsWhereverTheChunksEnd",
      "StreamChain.LimitCutAndTruncateLetExactlyTheirBytesThrough", "EngineFaults.SlowClose",
      "EngineFaults.ResetOfIdleConnectionsOnEitherSide"}},
    {"A12-6 one bad exchange or accept() stops nobody",
     {"EngineCrowd.WithoutDescriptorsNothingIsLostAndOthersGoOn",
      "Predecessors.WithoutDescriptorsADatagramIsLostAndSaidAndOthersGoOn",
      "Predecessors.AnUpstreamWithoutAnAddressStopsNobody", "Predecessors.AnUpstreamThatComesLateIsFound",
      "EngineDatagrams.AnUpstreamThatIsNotThereHarmsNothing"}},
    {"A12-7 UDP memory is bounded",
     {"EngineDatagrams.IdleSessionsEndAndTooManyReplaceTheOneIdleLongest",
      "EngineDatagrams.WhatDoesNotFitIntoTheMemoryIsDroppedAndSaid"}},
    {"A12-8 a lost record leaks no count", {"Predecessors.DroppedEventsDoNotLeakTheCountOfActive"}},
    {"A12-9 every strike says its phase", {"EngineFaults.LatencyOnAnOpenConnectionFromTheArrivalOfTheBytes"}},
    {"A12-9 no drift", {"Predecessors.LatenessDoesNotAddUp", "Pacer.KeepsItsRateThoughEveryWakeUpIsLate"}},
    {"A12-10 several links change in one step", {"EngineFaults.PhasesChangeAllLinksInOneStep"}},
    // --- A6, A7: delays of an old phase ---
    {"A6 a datagram delayed by an old phase is not late after recovery",
     {"EngineDatagrams.DelayOneWayAndNotLateAfterRecovery",
      "DatagramChain.ADatagramDelayedByAnOldSetIsNotLateAfterRecovery"}},
    {"A7 a fault in both phases keeps its state and its draws",
     {"Replacing.AFaultThatStaysKeepsWhatItHoldsAndItsTime",
      "Replacing.WhatIsDecidedStaysDecidedThoughOthersComeAndGo"}},
    // --- B5: defects of Toxiproxy ---
    {"B5-1 the seed counts", {"EngineFaults.TheSameSeedHitsTheSameConnections"}},
    {"B5-2 half-close",
     {"EngineStream.HalfCloseIsHonouredEitherWay", "Predecessors.HalfCloseIsHonouredUnderFaultsToo"}},
    {"B5-3 a reset of a live connection is a reset",
     {"EngineFaults.ResetOfABusyConnection", "Predecessors.AResetOfALiveConnectionIsAResetOnBothSidesAndNoFailure"}},
    {"B5-4 probability 0 touches nothing",
     {"Predecessors.ProbabilityZeroLeavesEveryByteAndEveryDecisionAsItWas",
      "Predecessors.ProbabilityZeroIsNotEvenInTheWay", "Predecessors.ProbabilityZeroTouchesNoDatagramAndNoDecision",
      "Selectors.ProbabilityZeroTouchesNothingAndIsNotEvenInTheWay"}},
    {"B5-5 disabling does not wait for a connect",
     {"Predecessors.DisablingWhileTheUpstreamDoesNotAnswerIsQuickAndOthersGoOn"}},
    {"B5-6 control does not wait for readers that stopped, and memory is bounded",
     {"Predecessors.ControlAnswersWhileClientsDoNotRead", "EngineCrowd.MemoryIsBoundedUnderReadersThatStop"}},
    {"B5-7 a cut after a time is not re-armed by traffic; idle connections are reset",
     {"EngineFaults.CutAfterATimeThoughTrafficFlows", "EngineFaults.ResetOfIdleConnectionsOnEitherSide"}},
    {"B5-8 faults given with the link are in force from its first connection",
     {"EngineFaults.SlowAccept", "EngineFaults.HalfOpenFromTheBeginningLetsTheConnectionBeMadeFirst"}},
    // --- B8: what users asked for ---
    {"B8 558 removing a fault hangs nothing",
     {"EngineCrowd.RemovingAFaultWithAThousandStuckClientsIsQuick",
      "EngineCrowd.AnyFaultIsRemovedFromAThousandStuckClientsAtOnce"}},
    {"B8 578 packet loss", {"EngineDatagrams.BlackholeLossAndDuplication", "Peers.Iperf3SeesTheLossOfDatagrams"}},
    {"B8 39 UDP", {"EngineDatagrams.AClientKeepsItsUpstreamSocketAndGetsManyReplies"}},
    {"B8 50 faults that know the protocol", {"Filters.ChangeDelayAnswerAndClose"}},
    {"B8 123 slow and failed connects",
     {"EngineFaults.SlowAccept", "EngineFaults.HangConnectUntilItIsRemoved",
      "EngineFaults.RefuseIsARealRefusalAndHeals"}},
    {"B8 603 toxicity 0", {"EngineFaults.ResetWithProbabilityZeroResetsNobody"}},
    {"B8 274 seed", {"EngineFaults.TheSameSeedHitsTheSameConnections"}},
    {"B8 613 shared bandwidth",
     {"EngineFaults.ASharedBandwidthIsSharedByLinksAndConnections",
      "Predecessors.BandwidthOfALinkAndOfEachOfItsConnectionsTogether"}},
    {"B8 148 which connections a fault hit", {"EngineFaults.TheSameSeedHitsTheSameConnections"}},
    {"B8 414 a link comes with its faults", {"EngineFaults.SlowAccept"}},
    {"B8 404 the first fail, the next succeed", {"Predecessors.TheFirstConnectionsFailAndTheNextSucceed"}},
    {"B8 244 by the client's address",
     {"Predecessors.OnlyTheSelectedPeersAreStruck", "EngineFaults.PeersAreSelectedByAddress",
      "Subnets.HaveWhatTheyShould"}},
    {"B8 451 flipped bits, with their offsets",
     {"Predecessors.FlippedBitsAreSaidWithTheirOffsets", "StreamChain.BitsFlipAtTheirOffsetsWhereverTheChunksEnd"}},
    {"B8 149 cut after a time, after bytes",
     {"EngineFaults.CutAfterATimeThoughTrafficFlows",
      "EngineFaults.CutAndLimitLetExactlyTheirBytesThroughAndEndAsTheySay"}},
    {"B8 655 latency one way and both", {"Predecessors.LatencyIsOneWayAndBothWaysAreTwoLatencies"}},
    {"B8 232 memory",
     {"EngineCrowd.MemoryIsBoundedUnderReadersThatStop", "EngineCrowd.AFewWithMuchDoNotStarveTheOthers"}},
    {"B8 209 half-open", {"EngineFaults.HalfOpenTellsOneSideNothing"}},
    // --- E11: targets ---
    {"E11 10,000 idle connections", {"EngineCrowd.ManyIdleConnectionsCostLittle"}},
    {"E11 latency is exact",
     {"EngineFaults.LatencyIsNeverEarlyAndWithinAMillisecondWhereTheMachineLetsIt",
      "Predecessors.BusyConnectionsMakeNobodyEarly"}},
};

std::set<std::string, std::less<>> all_tests() {
  std::set<std::string, std::less<>> names;
  const auto& program = *testing::UnitTest::GetInstance();
  for (int i = 0; i < program.total_test_suite_count(); ++i) {
    const auto& suite = *program.GetTestSuite(i);
    for (int k = 0; k < suite.total_test_count(); ++k)
      names.insert(std::string(suite.name()) + "." + suite.GetTestInfo(k)->name());
  }
  return names;
}

/// "item: test" of every test that does not exist, and every item that names none.
std::vector<std::string> missing(const std::vector<Item>& items) {
  const auto names = all_tests();
  std::vector<std::string> found;
  for (const auto& item : items) {
    if (item.tests.empty()) found.push_back(std::string(item.what) + ": no test");
    for (const auto test : item.tests)
      if (!names.contains(test)) found.push_back(std::string(item.what) + ": " + std::string(test));
  }
  return found;
}

TEST(PredecessorsIndex, EveryItemNamesTestsThatExist) {
  EXPECT_THAT(missing(index_of_predecessors), testing::IsEmpty());
  EXPECT_THAT(missing({{"x", {"PredecessorsIndex.NoSuchTest"}}, {"y", {}}}),
              testing::ElementsAre("x: PredecessorsIndex.NoSuchTest", "y: no test"));
}

TEST(PredecessorsIndex, NoTestOfAPredecessorsDefectIsForgotten) {
  std::set<std::string, std::less<>> named;
  for (const auto& item : index_of_predecessors) named.insert(item.tests.begin(), item.tests.end());
  for (const auto& test : all_tests()) EXPECT_TRUE(!test.starts_with("Predecessors.") || named.contains(test)) << test;
}

}  // namespace
