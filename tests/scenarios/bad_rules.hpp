// Rules that are refused, with the marks below them and the message; where one program runs under rules ("exec") and
// the events are those of one program.
#pragma once

#include <string>
#include <vector>

namespace leafcutter::scenarios {

struct BadRule {
  const char* rule;
  const char* marks;
  const char* message;
};

inline const std::vector<std::string>& events_of_a_program() {
  static const std::vector<std::string> kinds = {"syscall", "fault.fired"};
  return kinds;
}

inline const std::vector<BadRule>& bad_rules() {
  static const std::vector<BadRule> list = {
      {"", "^", "expected a rule such as \"fsync=EIO path=*.wal #2\", found nothing"},
      {"fsync", "^~~~~", "expected CALL=EFFECT, such as fsync=EIO; found \"fsync\""},
      {"\"fsync=EIO\"", "^~~~~~~~~~~", "expected CALL=EFFECT, such as fsync=EIO; found \"fsync=EIO\""},
      {"wirte=EIO", "^~~~~", "unknown system call \"wirte\"; did you mean \"write\"?"},
      {"ioctl=EIO", "^~~~~",
       "unknown system call \"ioctl\"; the families are read, write, open, fsync, rename, unlink, mkdir, truncate, "
       "allocate, connect, accept, send, receive, sleep, random and clock"},
      {"=EIO", "^~~~", "expected CALL=EFFECT, such as fsync=EIO; found \"EIO\""},
      {"writev=EIO", "^~~~~~",
       "\"writev\" serves files and sockets; say object=file (family \"write\") or object=socket-tcp (family "
       "\"send\")"},
      {"fsync=", "^~~~~~", "expected an effect after \"=\": an error such as EIO, or a kind of fault"},
      {"fsync=EOI", "      ^~~", "unknown effect \"EOI\"; did you mean \"EIO\"?"},
      {"fsync=4096", "      ^~~~", "an error is a name such as EIO or a number from 1 to 4095, found \"4096\""},
      {"fsync=errno:EIO", "      ^~~~~", "an error is named by itself, such as fsync=EIO"},
      {"fsync=shrot:3", "      ^~~~~", "unknown effect \"shrot\"; did you mean \"short\"?"},
      {"fsync=short:3", "      ^~~~~", "\"short\" strikes read, write, send and receive, never \"fsync\""},
      {"rename=torn:3", "       ^~~~", "\"torn\" strikes write and send, never \"rename\""},
      {"read=crash-after", "     ^~~~~~~~~~~",
       "\"crash-after\" strikes write, open, fsync, rename, unlink, mkdir, truncate, allocate, connect and send, never "
       "\"read\"; use crash-before"},
      {"fsync=latency:2s", "      ^~~~~~~",
       "\"latency\" strikes links, not system calls; in a scenario it stands under \"network\""},
      {"fsync=pause:2s", "      ^~~~~",
       "\"pause\" strikes services, not system calls; in a scenario it stands under \"process\""},
      {"pause:1s after=syscall", "^~~~~",
       "\"pause\" strikes services, and there is one program here; at a call it is written CALL=EFFECT, such as "
       "fsync=crash-before"},
      {"write=short", "      ^~~~~",
       "\"short\" needs an argument, how many bytes are carried; a call of no more is not struck: write short:100"},
      {"write=short:", "            ^",
       "parameter \"bytes\" of fault \"short\": expected a whole number from 1, found \"\""},
      {"write=short:0", "            ^",
       "parameter \"bytes\" of fault \"short\": expected a whole number from 1, found \"0\""},
      {"write=short:10x", "            ^~~",
       "parameter \"bytes\" of fault \"short\": expected a whole number from 1, found \"10x\""},
      {"write=short:99999999999999999999", "            ^~~~~~~~~~~~~~~~~~~~",
       "parameter \"bytes\" of fault \"short\": expected a whole number from 1, found \"99999999999999999999\""},
      {"write=short:1,2", "              ^", "\"short\" takes one argument; found \"2\" beyond"},
      {"write=hold", "      ^~~~",
       "\"hold\" needs an argument, how long it is held when the event does not come: write hold:2s"},
      {"write=hold:5", "           ^",
       "parameter \"at-most\" of fault \"hold\": \"5\" is not a duration: the unit is missing (ns, us, ms, s, m or h)"},
      {"write=delay:2h", "            ^~", "parameter \"for\" of fault \"delay\": more than 1h"},
      {"write=skip", "      ^~~~", "\"skip\" strikes sleep, never \"write\""},
      {"sleep=skip:3", "           ^", "\"skip\" takes no argument; found \"3\" beyond"},
      {"read=corrupt:17,8", "                ^",
       "parameter \"bit\" of fault \"corrupt\": expected a whole number from 0 to 7, found \"8\""},
      {"connect=ETIMEDOUT:2s,3s", "                     ^~", "\"errno\" takes 2 arguments; found \"3s\" beyond"},
      {"connect=ETIMEDOUT:soon", "                  ^~~~",
       "parameter \"late\" of fault \"errno\": \"soon\" is not a duration: expected a whole number and a unit, such as "
       "300ms, 5s or 2m"},
      {"fsync=fsync-lost:EOI", "                 ^~~",
       "parameter \"error\" of fault \"fsync-lost\": unknown error \"EOI\"; did you mean \"EIO\"?"},
      {"fsync=EIO pth=*.wal", "          ^~~", "unknown key \"pth\"; did you mean \"path\"?"},
      {"fsync=EIO path=", "          ^~~~~", "\"path\" has no value"},
      {"fsync=EIO path=a path=b", "                 ^~~~~~", "\"path\" is given twice"},
      {"fsync=EIO object=fil", "                 ^~~", "unknown class of objects \"fil\"; did you mean \"file\"?"},
      {"write=EIO object=socket-tcp", "                 ^~~~~~~~~~",
       "\"write\" never acts on \"socket-tcp\"; use \"send\""},
      {"read=EIO object=socket-udp", "                ^~~~~~~~~~",
       "\"read\" never acts on \"socket-udp\"; use \"receive\""},
      {"send=EIO object=file", "                ^~~~", "\"send\" never acts on \"file\"; use \"write\""},
      {"rename=EIO object=pipe", "                  ^~~~", "\"rename\" never acts on \"pipe\""},
      {"connect=EIO path=/run/x", "            ^~~~~~~~~~~",
       "\"connect\" acts on sockets, which have no path; use peer= (a unix socket is peer=unix:/run/x)"},
      {"getrandom=EIO path=/dev/urandom", "              ^~~~~~~~~~~~~~~~~",
       "\"random\" acts on no file and has no path"},
      {"fsync=EIO peer=broker", "          ^~~~~~~~~~~", "\"fsync\" acts on no socket and has no peer"},
      {"write=EIO peer=broker", "          ^~~~~~~~~~~", "\"write\" acts on no socket and has no peer"},
      {"fsync=EIO size=100", "          ^~~~~~~~", "\"fsync\" carries no number of bytes"},
      {"rename=EIO offset=0", "           ^~~~~~~~", "\"rename\" is at no place in a file"},
      {"write=EIO size=big", "               ^~~", "expected bytes as 100, 1..100, 4k.. or ..1M, found \"big\""},
      {"write=EIO size=9..3", "               ^~~~", "expected bytes as 100, 1..100, 4k.. or ..1M, found \"9..3\""},
      {"write=EIO size=..", "               ^~", "expected bytes as 100, 1..100, 4k.. or ..1M, found \"..\""},
      {"write=short:100 size=..100", "                ^~~~~~~~~~",
       "\"short\" strikes calls of more than 100 bytes, and size= leaves none of them"},
      {"rename=EIO flags=O_CREAT", "           ^~~~~~~~~~~~~",
       "\"rename\" has no flags to select by; open, send and receive have"},
      {"open=EIO flags=O_CREATE", "               ^~~~~~~~", "unknown flag \"O_CREATE\"; did you mean \"O_CREAT\"?"},
      {"open=EIO flags=MSG_MORE", "               ^~~~~~~~",
       "\"MSG_MORE\" is a flag of send and receive, not of \"open\""},
      {"open=EIO flags=O_CREAT|", "                       ^",
       "unknown flag \"\"; known: O_WRONLY, O_RDWR, O_CREAT, O_EXCL, O_TRUNC, O_APPEND, O_NONBLOCK, O_DSYNC, O_SYNC, "
       "O_DIRECT, O_DIRECTORY, O_NOFOLLOW, O_CLOEXEC and O_TMPFILE"},
      {"write=EIO call=pwrite", "               ^~~~~~",
       "family \"write\" has no call \"pwrite\"; did you mean \"pwrite64\"?"},
      {"pwrite64=EIO call=write", "             ^~~~~~~~~~",
       "the rule is about \"pwrite64\" already; use call= with the family \"write\""},
      {"fsync=EIO probability=2", "                      ^", "a probability is at most 1 (or 100%); found \"2\""},
      {"fsync=EIO probability=0", "                      ^", "a probability of 0 would never strike"},
      {"fsync=EIO probability=0.0000001", "                      ^~~~~~~~~",
       "expected a probability such as 0.25 or 25%, no finer than a millionth; found \"0.0000001\""},
      {"fsync=EIO probability=often", "                      ^~~~~",
       "expected a probability such as 0.25 or 25%, no finer than a millionth; found \"often\""},
      {"fsync=EIO probability=150%", "                      ^~~~",
       "a probability is at most 1 (or 100%); found \"150%\""},
      {"fsync=EIO after=\"replay\"", "                 ^~~~~~",
       "\"after\": unknown event \"replay\"; known: syscall and fault.fired"},
      {"fsync=EIO after=\"reply from=shop\"", "                 ^~~~~",
       "\"after\": there is no event \"reply\" here; there is syscall and fault.fired"},
      {"fsync=EIO after=\"syscall famly=fsync\"", "                         ^~~~~",
       "\"after\": event \"syscall\" has no attribute \"famly\"; did you mean \"family\"?"},
      {"fsync=EIO after=\"syscall path=*.wal\"", "                              ^~~~~",
       "\"after\": values of events are no globs; as a regular expression this is path=/^.*[.]wal$/ (a \"*\" that is "
       "meant as such stands in quotes)"},
      {"write=hold:1s until=\"syscall call=renmae\"", "                                  ^~~~~~",
       "\"until\": there is no system call \"renmae\" that can be seen; did you mean \"rename\"?"},
      {"fsync=EIO after=\"syscall", "                ^~~~~~~~", "this quote is not closed"},
      {"fsync=EIO until=fault.fired", "          ^~~~~", "\"errno\" waits for nothing; \"until\" goes with hold"},
      {"fsync=EIO service=shop", "          ^~~~~~~", "there is one program here and no service to choose"},
      {"fsync=EIO #0", "          ^~", "expected a whole number from 1 to 4294967295, found \"0\""},
      {"fsync=EIO #", "          ^", "expected a whole number from 1 to 4294967295, found \"\""},
      {"fsync=EIO #two", "          ^~~~", "expected a whole number from 1 to 4294967295, found \"two\""},
      {"fsync=EIO first", "          ^~~~~", "\"first\" needs a number, such as \"first 3\""},
      {"fsync=EIO frist 3", "          ^~~~~",
       "expected key=value, #n, first n, every n or from n; found \"frist\"; did you mean \"first\"?"},
      {"fsync=EIO every x", "                ^", "expected a whole number from 1 to 4294967295, found \"x\""},
      {"fsync=EIO from -1", "               ^~", "expected a whole number from 1 to 4294967295, found \"-1\""},
      {"fsync=EIO first path=x", "                ^~~~~~",
       "expected a whole number from 1 to 4294967295, found \"path=x\""},
      {"fsync=EIO #2 every 3", "             ^~~~~", "it is said twice which calls are struck: \"#2\" and \"every\""},
      {"fsync=EIO 2", "          ^", "expected key=value, #n, first n, every n or from n; found \"2\""},
      {"fsync=EIO *.wal", "          ^~~~~", "expected key=value, #n, first n, every n or from n; found \"*.wal\""},
      {"write=no-space:4096 #2", "                    ^~",
       "a full disk stays full: \"no-space\" takes no occurrences but \"from n\", and no probability"},
      {"write=no-space:4096 probability=0.5", "                    ^~~~~~~~~~~~~~~",
       "a full disk stays full: \"no-space\" takes no occurrences but \"from n\", and no probability"},
      {"fsync=EIO path=a\"b\"", "                ^", "a quote within a word; put the whole value in quotes"},
      {"fsync=EIO,write=EIO", "      ^~~~~~~~~~~~~",
       "unknown effect \"EIO,write=EIO\"; expected the name of an error, or one of delay, crash-before, crash-after, "
       "power-loss-before, power-loss-after, short, torn, hold, no-space, corrupt, fsync-lost, fsync-lie, slow, skip "
       "and pause-at"},
      {"pread=EIO", "^~~~~", "unknown system call \"pread\"; did you mean \"pread64\"?"},
      {"recv=EIO", "^~~~", "unknown system call \"recv\"; did you mean \"recvfrom\"?"},
      {"writ=EIO", "^~~~", "unknown system call \"writ\"; did you mean \"write\"?"},
      {"fsync=EIO path=*.wal uncounted", "                     ^~~~~~~~~",
       "not without counting: the kernel cannot look at its path"},
      {"write=EIO uncounted", "          ^~~~~~~~~",
       "not without counting: which file a call of write acts on must be looked at"},
      {"fsync=delay:1s uncounted", "               ^~~~~~~~~",
       "not without counting: only an error without `late` needs nobody to carry it out"},
      {"fsync=EIO #2 uncounted", "             ^~~~~~~~~",
       "not without counting: the kernel cannot look at its occurrences (#2)"},
      {"fsync=EIO uncounted uncounted", "                    ^~~~~~~~~", "\"uncounted\" is said twice"},
      {"fsync=EIO uncouned", "          ^~~~~~~~",
       "expected key=value, #n, first n, every n or from n; found \"uncouned\"; did you mean \"uncounted\"?"},
  };
  return list;
}

}  // namespace leafcutter::scenarios
