// Records two steps, and writes what is read back: RECORDING JSON CSV.

#include <fstream>

#include <drawpoint/instrumentation/export/csv.hpp>
#include <drawpoint/instrumentation/export/json.hpp>
#include <drawpoint/instrumentation/recorder/loop_track.hpp>
#include <drawpoint/instrumentation/trace/trace.hpp>

int main(int count, char** arguments) {
    using namespace drawpoint;
    if (count != 4)
        return 2;
    {
        Recorder recorder{arguments[1], {}};
        LoopTrack track{recorder};
        track.begin_pass(PassKind::train, 0);
        for (std::uint32_t batch = 0; batch < 2; ++batch) {
            track.begin_step(Phase::train, 0, batch);
            track.mark(Span::starved);
            track.end_draw(1);
            track.mark(Span::forward);
            track.end_step(StepStatus::complete, 0.5);
            track.mark(Span::between);
        }
        track.end_steps();
        track.end_pass();
        recorder.finish();
    }
    const Ledger ledger = read_trace(arguments[1]).ledger;
    std::ofstream json{arguments[2]}, csv{arguments[3]};
    write_json_ledger(ledger, json);
    write_csv_steps(ledger, csv);
}
