#include <algorithm>
#include <array>
#include <charconv>
#include <numeric>

#include <nlohmann/json.hpp>

#include <drawpoint/pipeline/storage/tar_shards.hpp>
#include "pipeline/storage/tar_index.hpp"
#include "pipeline/storage/tar_reader.hpp"

namespace drawpoint {

namespace {

constexpr std::array<std::string_view, 4> image_fields{"jpg", "jpeg", "png", "webp"};   // the first one there is taken
constexpr std::size_t longest_cls = 64, longest_json = std::size_t{1} << 20;

std::string_view trimmed(std::string_view text) {
    constexpr std::string_view blank = " \t\r\n";
    const std::size_t begin = text.find_first_not_of(blank);
    return begin == text.npos ? std::string_view{} : text.substr(begin, text.find_last_not_of(blank) + 1 - begin);
}

/// Collects the members of one sample after the other.
class Scan {
public:
    explicit Scan(TarInput& input) : path_{input.path()}, reader_{input} {}

    TarIndex run() {
        while (reader_.next(member_))
            if (!member_.is_folder)
                if (const std::optional<TarKey> key = tar_key(member_.name))
                    take(*key);
        finish();
        if (index_.size() == 0)
            throw TarError{path_, 0, "the shard holds no sample"};
        refuse_twins();
        return std::move(index_);
    }

private:
    struct Image {
        std::size_t rank = image_fields.size();
        std::uint64_t offset = 0, bytes = 0;
        std::string name;
    };

    [[noreturn]] void refuse(std::uint64_t offset, std::string_view member, const std::string& what) const {
        throw TarError{path_, offset, "member '" + std::string{member} + "': " + what};
    }

    void take(const TarKey& key) {
        if (!open_ || key.key != key_) {
            finish();
            open_ = true;
            key_ = key.key;
            begin_ = member_.header;
            image_.rank = image_fields.size();
            cls_.reset();
            json_.reset();
            fields_.clear();
        }
        if (std::ranges::find(fields_, key.field) != fields_.end())
            refuse(member_.header, member_.name, "its sample has this field already");
        if (fields_.size() >= 1000)
            refuse(member_.header, member_.name, "its sample has more than 1000 fields");
        fields_.push_back(key.field);
        const auto rank = static_cast<std::size_t>(std::ranges::find(image_fields, key.field) - image_fields.begin());
        if (rank < image_.rank) {
            if (member_.bytes > max_tar_image_bytes)
                refuse(member_.header, member_.name,
                       "an image file of " + std::to_string(member_.bytes) + " bytes is too large");
            image_ = {rank, member_.offset, member_.bytes, member_.name};
        } else if (key.field == "cls") {
            cls_ = label_of_cls();
        } else if (key.field == "json") {
            json_ = label_of_json();
        }
    }

    std::int64_t label_of_cls() {
        reader_.contents(member_, longest_cls, text_);
        const std::string_view digits = trimmed(text_);
        std::int64_t label = -1;
        const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), label);
        if (digits.empty() || error != std::errc{} || end != digits.data() + digits.size() || label < 0 ||
            label > largest_label)
            refuse(member_.header, member_.name,
                   "the label must be a number from 0 to " + std::to_string(largest_label));
        return label;
    }

    std::optional<std::int64_t> label_of_json() {
        reader_.contents(member_, longest_json, text_);
        const auto document = nlohmann::json::parse(text_, nullptr, false);
        if (document.is_discarded())
            refuse(member_.header, member_.name, "broken JSON");
        if (!document.is_object())
            return std::nullopt;
        for (const char* field : {"label", "cls"})
            if (const auto found = document.find(field); found != document.end()) {
                // A negative number is no unsigned one to the parser.
                if (!found->is_number_unsigned() ||
                    found->get<std::uint64_t>() > static_cast<std::uint64_t>(largest_label))
                    refuse(member_.header, member_.name,
                           '"' + std::string{field} + "\" must be a number from 0 to " + std::to_string(largest_label));
                return found->get<std::int64_t>();
            }
        return std::nullopt;
    }

    void finish() {
        if (!open_)
            return;
        if (image_.rank == image_fields.size())
            throw TarError{path_, begin_, "sample '" + key_ + "' has no jpg, jpeg, png or webp member"};
        if (!cls_ && !json_)
            refuse(begin_, image_.name,
                   "its sample has no label: no cls member, and no json with \"label\" or \"cls\"");
        index_.add(image_.offset, image_.bytes, cls_ ? *cls_ : *json_, image_.name);
    }

    // A key that comes again later: WebDataset would make two samples of it, of which one is likely half of the other.
    void refuse_twins() const {
        const auto key = [&](std::size_t sample) { return tar_key(index_.name(sample))->key; };
        std::vector<std::size_t> order(index_.size());
        std::iota(order.begin(), order.end(), std::size_t{0});
        std::ranges::sort(order, [&](std::size_t a, std::size_t b) {
            const int compared = key(a).compare(key(b));
            return compared != 0 ? compared < 0 : a < b;
        });
        for (std::size_t i = 1; i < order.size(); ++i)
            if (key(order[i - 1]) == key(order[i]))
                refuse(index_.offsets[order[i]] - tar_block, index_.name(order[i]),
                       "its key was there before, at byte " + std::to_string(index_.offsets[order[i - 1]] - tar_block));
    }

    const char* path_;
    TarReader reader_;
    TarMember member_;
    TarIndex index_;
    bool open_ = false;   // a sample is being collected: these are its
    std::string key_;
    std::uint64_t begin_ = 0;
    Image image_;
    std::optional<std::int64_t> cls_, json_;
    std::vector<std::string> fields_;
    std::string text_;
};

}   // namespace

std::optional<TarKey> tar_key(std::string_view member) {
    const std::size_t slash = member.rfind('/');
    const std::size_t base = slash == member.npos ? 0 : slash + 1;
    if (base == 0 && member.starts_with("__") && member.ends_with("__"))
        return std::nullopt;
    const std::size_t dot = member.find('.', base);
    if (dot == member.npos || dot == base)
        return std::nullopt;
    TarKey key{member.substr(0, dot), std::string{member.substr(dot + 1)}};
    for (char& letter : key.field)
        if (letter >= 'A' && letter <= 'Z')
            letter = static_cast<char>(letter - 'A' + 'a');
    return key;
}

void TarIndex::add(std::uint64_t offset, std::uint64_t image_bytes, std::int64_t label, std::string_view member) {
    offsets.push_back(offset);
    bytes.push_back(image_bytes);
    labels.push_back(label);
    names.append(member);
    name_ends.push_back(names.size());
}

TarIndex scan_tar(TarInput& input) {
    TarIndex index = Scan{input}.run();
    index.file_bytes = input.file().size();
    index.modified_ns = input.file().modified_ns();
    index.compression = input.compression();
    return index;
}

}   // namespace drawpoint
