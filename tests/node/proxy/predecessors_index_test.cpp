// Which test answers which behaviour and defect of the proxies before this one. A: the `fault` engine (behaviours its
// tests fix, and its defects); B: Toxiproxy (its interface, defects reproduced, and what its users asked for). That
// every named test exists, in this program or another, is a test itself.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/checkout.hpp"

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
      "Predecessors.BusyConnectionsMakeNobodyEarly", "Predecessors.ALongLatencyIsAsExactAsAShortOne"}},
};

/// What other programs answer: documents, DNS, Toxiproxy's interface, the command.
const std::vector<Item> index_elsewhere{
    // --- A11, A12: `fault`, as a program ---
    {"A11 NXDOMAIN keeps the ID, has its code, and is one intervention",
     {"DnsDatagrams.AnswersEchoIdAndQuestionAndKeepEdns", "Dig.FailuresHaveTheirCodesAndKeepEdns"}},
    {"A11 invalid values are refused before anything listens", {"BadRuns.EachSaysExactlyWhatIsWrongAndWhere"}},
    {"A11 its documents mean what they meant",
     {"GoodRuns.TheFirstVersionMeansToTheEngineWhatItMeantToFault", "GoodRuns.SpansAreReadAsFaultReadsThem"}},
    {"A11 a bad listen and a bad upstream are said where they stand",
     {"Runner.APortInUseIsSaidAtItsPlaceInTheDocument",
      "Runner.AnUpstreamThatCannotBeReachedTroublesItsOwnProxyAlone"}},
    {"A11 phases reconfigure live connections, and the first is in force before the first connection",
     {"Runner.APhaseReplacesTheFaultsOfAllProxiesOnOpenConnections",
      "Runner.TheFirstPhaseIsInForceBeforeTheFirstConnection"}},
    {"A11 a change that cannot be carried out changes nothing",
     {"Runner.ADocumentThatCannotBeCarriedOutChangesNothing",
      "Runner.WhatWasClosedForADocumentThatFailsIsOpenedAgain"}},
    {"A11 the watcher follows renames and swapped links, and touches are none",
     {"ProxyCommand.AnEditIsCarriedOutAndABadOneIsNot", "ProxyCommand.ASwappedLinkIsAnEditAndATouchIsNone"}},
    {"A11 dashboard",
     {"ProxyDashboard.ShowsEveryLinkWithWhatIsActiveAndWhatStruck",
      "ProxyDashboard.FitsTheTerminalAndIsQuietAboutColoursWhenTold", "ProxyCommand.OnATerminalItDrawsAndCleansUp"}},
    {"A11 schemas are current",
     {"RunPages.TheSchemaIsCurrent", "RunPages.TheReferenceIsCurrent",
      "RunSchema.AgreesWithTheLoaderAboutEveryChangeToAGoodDocument"}},
    {"A12-3 a journal is replayed",
     {"Replay.ConnectionsAndBytesAreStruckAsRecordedWhateverTheSeed",
      "Replay.DatagramsAreLostAsRecordedWhateverTheSeed",
      "ProxyCommand.AReplayDecidesAsTheJournalSaysWhateverTheSeed"}},
    {"A12-4 UDP, over sockets",
     {"UdpFaults.BurstLossFollowsItsModelAndItsSeed", "UdpFaults.BandwidthIsWithinTwoPercent",
      "UdpFaults.BandwidthIsWithinTwoPercentFromTenKilobytesToAHundredMegabytesASecond",
      "UdpSessions.TheUpstreamMaySpeakWheneverItLikesWithinASession"}},
    {"A12-6 names: a slow one keeps no other waiting, a missing one is said",
     {"Resolving.ASlowNameKeepsNoOtherWaiting", "Resolving.TheEndWaitsForNoLookupAndCallsNobodyAfterwards",
      "EngineStream.ANameThatDoesNotExistIsSaid"}},
    {"A12-6 few descriptors: as many as the system allows", {"Descriptors.AreAsManyAsTheSystemAllows"}},
    {"A12-8 totals are the sums of the records", {"Runner.TotalsAreTheSumsOfTheRecords"}},
    {"A12-9 SIGTERM and SIGINT leave a whole journal", {"ProxyCommand.SignalsEndItInOrderWithAWholeJournal"}},
    {"A12-9 phases are in the journal, by a clock that began with the run",
     {"ProxyCommand.PhasesFollowEachOtherAndTheLastOneEndsIt", "PhaseAt.IsAFunctionOfTheTimeSinceTheStart"}},
    {"A12-9 what a protocol cannot do is found at load, in the last phase too",
     {"BadRuns.EachSaysExactlyWhatIsWrongAndWhere"}},
    {"A12-10 control over the network, with a token",
     {"Access.AnotherAddressNeedsAToken", "Access.ATokenIsAskedForByEveryRequest"}},
    {"A6 DNS over TCP, and the retry after truncation",
     {"Dig.TruncationSendsItToTcpWhichAnswers", "DnsThroughProxy.DigSeesEveryFaultOverDatagramsAndConnections"}},
    {"A6 DNS by name, type and occurrence; EDNS and SOA",
     {"DnsDatagrams.StrikesByNameTypeAndOccurrenceOverAllClients", "Dig.FailuresHaveTheirCodesAndKeepEdns"}},
    {"A6 what is no DNS is not counted as struck", {"DnsDatagrams.WhatIsNoQueryIsLetThroughAndSaid"}},
    {"A6 DNS stands anywhere in a chain",
     {"Dig.WhateverStandsBesideItMessagesStayWhole", "Dig.AnAnswerThatIsMadeUpPassesWhatStandsBehind"}},
    {"A6 sessions of peers that are gone end", {"GonePeers.ABlackholeKeepsNoConnectionForEverWhoseEndsAreGone"}},
    // --- B1, B2, B3: Toxiproxy's toxics, interface and clients ---
    {"B1 latency", {"Toxics.LatencyDelaysOneWayFromTheArrivalOfTheBytes"}},
    {"B1 jitter", {"Toxics.JitterSpreadsTheLatencyOnBothSidesAndNeverBelowZero"}},
    {"B1 bandwidth", {"Toxics.BandwidthIsThousandsOfBytesPerSecond", "Toxics.ABandwidthOfZeroStallsUntilItIsRemoved"}},
    {"B1 slow_close", {"Toxics.SlowCloseDelaysTheEndAlone"}},
    {"B1 timeout",
     {"Toxics.TimeoutDropsEverythingAndThenCloses", "Toxics.TimeoutIsNotReArmedByTraffic",
      "Toxics.ATimeoutOfZeroNeverClosesAndRemovingItDoes"}},
    {"B1 reset_peer", {"Toxics.ResetPeerResetsBothSides", "Toxics.ResetPeerWaitsForItsTimeout"}},
    {"B1 slicer", {"Toxics.SlicerCutsAndPausesAndChangesNothing"}},
    {"B1 limit_data",
     {"Toxics.LimitDataClosesAtExactlyThatManyBytes", "Toxics.LimitDataGoesOnCountingWhenItIsChanged"}},
    {"B1 noop", {"Toxics.NoopDoesNothing"}},
    {"B1 toxicity is drawn once, whatever its neighbours do", {"Toxicity.StaysWhenANeighbourChanges"}},
    {"B2 GET /proxies", {"Contract.AnEmptyListIsAnObject"}},
    {"B2 POST /proxies",
     {"Contract.CreateAnswersTheProxy", "Contract.BadProxiesAreRefused", "Contract.ANameIsTakenOnce",
      "Contract.APortThatIsTakenIs500AndNothingIsCreated"}},
    {"B2 POST /populate",
     {"Contract.PopulateAnswersItsProxies", "Contract.PopulateChecksEverythingBeforeItCreatesAnything",
      "Contract.PopulateStopsAtAPortThatIsTaken"}},
    {"B2 GET, POST, PATCH and DELETE /proxies/NAME",
     {"Contract.WhatIsNotThereIs404", "Contract.UpdateKeepsWhatIsLeftOut", "Contract.AnotherUpstreamDropsConnections",
      "Contract.AnotherAddressMovesTheProxyAndKeepsItsToxics", "Contract.DeleteIs204AndEmpty"}},
    {"B2 toxics: create, update, delete",
     {"Contract.AToxicHasDefaults", "Contract.BadToxicsAreRefused", "Contract.ToxicNamesAreUniqueAcrossBothStreams",
      "Contract.AnUpdateMergesAttributes", "Contract.DeletingAToxicIs204"}},
    {"B2 POST /reset", {"Contract.ResetEnablesAllAndRemovesToxics"}},
    {"B2 GET /version, /metrics", {"Contract.VersionIsOneLine", "Contract.MetricsCountBytesOfBothWays"}},
    {"B2 errors, headers, methods, browsers, keys in any case",
     {"Contract.EveryReplyHasARequestIdOfItsOwn", "Contract.BrowsersAreRefused", "Contract.OtherMethodsAre405",
      "Contract.KeysAreReadInAnyCase", "Contract.PortZeroIsResolved", "ListenAddress.ReadsAsGoDoes"}},
    {"B3 the client for Node",
     {"toxiproxy_client: creates a proxy on a free port", "toxiproxy_client: says its version"}},
    // --- B5: its defects, through its interface ---
    {"B5-1 the seed counts", {"Toxicity.IsDrawnForEachConnectionFromTheSeed"}},
    {"B5-2 half-close", {"Defects.AClientThatEndsItsHalfStillGetsItsAnswer"}},
    {"B5-3 reset_peer on a live connection", {"Defects.ResetPeerResetsConnectionsThatWereOpenAlready"}},
    {"B5-4 a toxicity of 0",
     {"Defects.ResetPeerWithAToxicityOfZeroResetsNothing", "toxiproxy_client: a toxicity of 0 touches nobody"}},
    {"B5-5 a connect that hangs",
     {"Defects.DisablingDoesNotWaitForAConnectThatHangs", "Defects.AConnectThatHangsKeepsNoOtherClientWaiting"}},
    {"B5-6 clients that stop reading",
     {"Defects.ClientsThatStopReadingDoNotStopTheInterface", "Defects.AThousandStuckClientsDoNotSlowARemoval"}},
    {"B5-7 timeout under traffic, reset_peer on idle connections",
     {"Defects.ResetPeerReachesIdleConnectionsAndTimeoutEndsBusyOnes"}},
    {"B5-8 toxics in files and populate", {"Defects.ToxicsAreHonouredWhereverProxiesComeFrom"}},
    // --- B8: what its users asked for ---
    {"B8 558 a call never waits for clients, connects or name servers",
     {"Defects.AThousandStuckClientsDoNotSlowARemoval", "HttpServer.ANameThatIsSlowKeepsNoOtherCallWaiting",
      "SilentNameServers.KeepNoOtherCallOfTheInterfaceWaiting"}},
    {"B8 447 toxics in configurations", {"Defects.ToxicsAreHonouredWhereverProxiesComeFrom"}},
    {"B8 603 a toxicity of 0", {"Toxicity.OfZeroTouchesNothing"}},
    {"B8 274 seed", {"Toxicity.IsDrawnForEachConnectionFromTheSeed"}},
    {"B8 613 bandwidth shared by the proxy", {"Toxics.BandwidthMayBeSharedByTheProxy"}},
    {"B8 148 which connections a toxic hit", {"ToxiproxyCommand.TheJournalSaysWhichConnectionsAToxicStruck"}},
    {"B8 414 a proxy comes with its toxics", {"Book.CreatingAddsOneLinkWithItsToxics"}},
    {"B8 404 the first fail, the next succeed",
     {"Only.TheFirstConnectionsFailAndTheOthersDoNot", "Only.ConnectionsCountFromWhenTheToxicWasAdded"}},
    {"B8 244 by the client's address", {"Only.PeersByTheirAddress"}},
    {"B8 270 control beyond loopback", {"Access.AnotherAddressNeedsAToken"}},
    {"B8 249 proxies outlive a restart", {"Configuration.IsWhatTheInterfaceSaysOfItsProxies"}},
    {"B8 232 memory", {"HttpServer.BodiesAndHeadersHaveTheBoundsThatAreAskedFor", "Book.HasBounds"}},
};

using TestNames = std::set<std::string, std::less<>>;

/// Those of this program.
TestNames own_tests() {
  TestNames names;
  const auto& program = *testing::UnitTest::GetInstance();
  for (int i = 0; i < program.total_test_suite_count(); ++i) {
    const auto& suite = *program.GetTestSuite(i);
    for (int k = 0; k < suite.total_test_count(); ++k)
      names.insert(std::string(suite.name()) + "." + suite.GetTestInfo(k)->name());
  }
  return names;
}

/// Those of all programs, as their sources name them.
TestNames all_tests() {
  static const std::regex here("\\bTEST(?:_F|_P)?\\(\\s*(\\w+),\\s*(\\w+)\\)"), script("\\btest\\(\"([^\"]+)\"");
  TestNames names;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(leafcutter::tests::checkout() + "/tests")) {
    const auto kind = entry.path().extension();
    if (kind != ".cpp" && kind != ".js") continue;
    std::ifstream file(entry.path());
    const std::string text((std::istreambuf_iterator<char>(file)), {});
    for (std::sregex_iterator one(text.begin(), text.end(), kind == ".js" ? script : here), end; one != end; ++one)
      names.insert(kind == ".js" ? entry.path().parent_path().filename().string() + ": " + (*one)[1].str()
                                 : (*one)[1].str() + "." + (*one)[2].str());
  }
  return names;
}

/// "item: test" of every test that does not exist, and every item that names none.
std::vector<std::string> missing(const std::vector<Item>& items, const TestNames& names) {
  std::vector<std::string> found;
  for (const auto& item : items) {
    if (item.tests.empty()) found.push_back(std::string(item.what) + ": no test");
    for (const auto test : item.tests)
      if (!names.contains(test)) found.push_back(std::string(item.what) + ": " + std::string(test));
  }
  return found;
}

TEST(PredecessorsIndex, EveryItemNamesTestsThatExist) {
  EXPECT_THAT(missing(index_of_predecessors, own_tests()), testing::IsEmpty());
  const auto all = all_tests();
  EXPECT_THAT(missing(index_elsewhere, all), testing::IsEmpty());
  EXPECT_TRUE(std::ranges::includes(all, own_tests())) << "sources and programs name the same tests";
  EXPECT_THAT(missing({{"x", {"PredecessorsIndex.NoSuchTest"}}, {"y", {}}}, all),
              testing::ElementsAre("x: PredecessorsIndex.NoSuchTest", "y: no test"));
}

TEST(PredecessorsIndex, NoTestOfAPredecessorsDefectIsForgotten) {
  std::set<std::string, std::less<>> named;
  for (const auto& item : index_of_predecessors) named.insert(item.tests.begin(), item.tests.end());
  for (const auto& test : own_tests()) EXPECT_TRUE(!test.starts_with("Predecessors.") || named.contains(test)) << test;
}

}  // namespace
