// SPDX-License-Identifier: Apache-2.0

/// The shells that there are scripts of completion for.
enum CompletionScript: String, CaseIterable {
    case bash, zsh, fish

    func text(_ table: CompletionTable) -> String {
        switch self {
        case .bash: Self.bash(table)
        case .zsh: Self.zsh(table)
        case .fish: Self.fish(table)
        }
    }

    /// A word of all three shells; for fish without backslashes, which its texts do not have.
    private static func quoted(_ text: String) -> String { text.quotedForShell(singly: true) }

    private static func list(_ words: [String]) -> String { quoted(words.joined(separator: " ")) }

    // MARK: bash

    private static func bash(_ table: CompletionTable) -> String {
        let commands = table.commands.map { command in
            let options = command.options.compactMap { option in
                option.value.map { "        \(option.names.joined(separator: " | "))) \(bashValue($0)) ;;\n" }
            }
            return """
                    \(command.pattern))
                        options=\(list(command.options.flatMap(\.names)))
                        first=\(list(command.first)) word=\(command.word == .item ? "item" : "text") joins=\(command.joinsValues ? "1" : "")
                        case $2 in
                \(options.joined())        esac
                        ;;

                """
        }
        return #"""
            # Completion of curlew for bash.

            # Sets what a command has, and what follows one of its options: nothing for an option without a value.
            _curlew_table() { # COMMAND OPTION
                kind= list=
                case $1 in
            \#(commands.joined())    esac
            }

            # Adds what completes the current word, without the part that readline leaves alone.
            _curlew_add() { # OPTION-OF-COMPGEN…
                local reply
                while IFS= read -r reply; do
                    # readline adds the slash only to what it knows as a folder.
                    if [[ $typed == @* && -d $reply ]]; then
                        reply+=/
                        compopt -o nospace 2>/dev/null
                    fi
                    reply=$head$reply
                    COMPREPLY+=("${reply#"$kept"}")
                done < <(compgen "$@" -- "$cur")
            }

            _curlew() {
                local words=() count=0 glue= splits= typed= index text
                COMPREPLY=()
                # readline splits words at these characters, too, and replaces only what follows the last of them, and an at sign itself.
                # Behind an option only an equals sign belongs to the same word.
                for ((index = 1; index <= COMP_CWORD; index++)); do
                    text=${COMP_WORDS[index]-}
                    splits=
                    [[ -z $text || -n ${text//[=:@]/} ]] || splits=1
                    if ((count > 0)) && [[ -n $text && -n $glue$splits && (-n $glue || $text == =* || ${words[count - 1]} != -*) ]]; then
                        words[count - 1]+=$text
                    else
                        words[count]=$text typed=
                        ((++count))
                    fi
                    if [[ -z $splits ]]; then typed+=$text; elif [[ $text == *@ ]]; then typed=@; else typed=; fi
                    glue=$splits
                done
                ((count > 0)) || return 0
                local last=$((count - 1)) command=main start=0
                if ((last > 0)); then
                    case ${words[0]} in
                    \#(table.subcommands.map(\.pattern).joined(separator: " | "))) command=${words[0]} start=1 ;;
                    esac
                fi
                local kind= list= options= first= word= joins= place=1 dashes=
                for ((index = start; index < last; index++)); do
                    text=${words[index]}
                    if [[ -n $kind ]]; then
                        kind=
                    elif [[ -z $dashes && $text == -- ]]; then
                        dashes=1
                    elif [[ -z $dashes && $text == -?* ]]; then
                        _curlew_table "$command" "$text"
                    else
                        place=
                    fi
                done
                local cur=${words[last]} head=
                local kept=${cur%"$typed"}
                # What the option before the current word needs.
                if [[ -z $kind ]]; then
                    _curlew_table "$command" "${cur%%=*}"
                    if ((last == 0)); then first="$first \#(table.names.joined(separator: " "))"; fi
                    if [[ -z $dashes && -n $joins && $cur == --*=* ]]; then
                        head=${cur%%=*}= cur=${cur#*=} kind=${kind:-text}
                    elif [[ -z $dashes && $cur == -* ]]; then
                        kind=option
                    elif [[ -n $place && -n $first ]]; then
                        kind=list list=$first
                    elif [[ -z $dashes && -z $cur ]]; then
                        kind=option
                    else
                        kind=$word
                    fi
                fi
                if [[ $kind == item && $cur == *@* ]]; then
                    head=$head${cur%@*}@ cur=${cur##*@} kind=file
                fi
                case $kind in
                option) _curlew_add -W "$options" ;;
                list) _curlew_add -W "$list" ;;
                file) compopt -o filenames 2>/dev/null; _curlew_add -f ;;
                folder) compopt -o filenames 2>/dev/null; _curlew_add -d ;;
                esac
                return 0
            }

            complete -F _curlew curlew

            """#
    }

    private static func bashValue(_ value: CompletionTable.Value) -> String {
        switch value {
        case .text: "kind=text"
        case .choices(let choices): "kind=list list=\(list(choices))"
        case .file: "kind=file"
        case .folder: "kind=folder"
        case .item: "kind=item"
        }
    }

    // MARK: zsh

    private static func zsh(_ table: CompletionTable) -> String {
        let functions = table.commands.map { command in
            var specs = command.options.flatMap { option in option.names.map { zshOption($0, of: option, joins: command.joinsValues) } }
            // With a space before it, an action is called without further arguments.
            if !command.first.isEmpty { specs.append(quoted("1:word: _curlew_first \(command.first.joined(separator: " "))")) }
            specs.append(quoted("*:word: " + (command.word == .item ? "_curlew_item" : "")))
            return """
                _curlew_\(command.name)() {
                    _arguments -s -S : \\
                        \(specs.joined(separator: " \\\n        "))
                }


                """
        }
        let subcommands = table.subcommands.flatMap { command in command.names.map { quoted("\($0):\(command.summary)") } }
        return #"""
            #compdef curlew
            # Completion of curlew for zsh.

            \#(functions.joined())# The choices for the first word that is no option, and the subcommands if it is the first of all.
            _curlew_first() { # CHOICE…
                local ret=1 expl
                local -a names=(
                    \#(subcommands.joined(separator: "\n        "))
                )
                [[ $subcommand$CURRENT != main2 ]] || { _describe -t commands subcommand names && ret=0; }
                _wanted words expl word compadd -- "$@" && ret=0
                return ret
            }

            # The name of a file behind an at sign.
            _curlew_item() {
                compset -P '*@' && _files
            }

            _curlew() {
                local curcontext=$curcontext context state line subcommand=main
                local -A opt_args
                if ((CURRENT > 2)); then
                    case $words[2] in
            \#(table.subcommands.map { "        \($0.pattern)) subcommand=\($0.name) ;;\n" }.joined())        esac
                    if [[ $subcommand != main ]]; then
                        shift words
                        ((CURRENT--))
                    fi
                fi
                _curlew_$subcommand
            }

            if [[ $funcstack[1] == _curlew ]]; then _curlew "$@"; else compdef _curlew curlew; fi

            """#
    }

    /// A text within brackets.
    private static func bracketed(_ text: String) -> String {
        "[" + text.unicodeScalars.map { #"[]\"#.unicodeScalars.contains($0) ? "\\\($0)" : "\($0)" }.joined() + "]"
    }

    private static func zshOption(_ name: String, of option: CompletionTable.Option, joins: Bool) -> String {
        let others = option.isRepeating ? "*" : option.names.count > 1 ? "(\(option.names.joined(separator: " ")))" : ""
        let summary = option.summary.isEmpty ? "" : bracketed(option.summary)
        guard let value = option.value else { return quoted(others + name + summary) }
        let action =
            switch value {
            case .text: " "
            case .choices(let choices): "(\(choices.joined(separator: " ")))"
            case .file: "_files"
            case .folder: "_path_files -/"
            case .item: " _curlew_item"
            }
        let label = option.names.first { $0.hasBytePrefix("--") } ?? name
        return quoted("\(others)\(name)\(joins && name.hasBytePrefix("--") ? "=" : "")\(summary):\(label.dropFirstScalars(2)):\(action)")
    }

    // MARK: fish

    private static func fish(_ table: CompletionTable) -> String {
        var lines: [String] = []
        for command in table.subcommands {
            for name in command.names {
                lines.append("complete -c curlew -n __curlew_begins -a \(name) -d \(quoted(command.summary))")
            }
        }
        for command in table.commands {
            let condition = "complete -c curlew -n '__curlew_is \(command.name)'"
            if !command.first.isEmpty {
                lines.append("complete -c curlew -n '__curlew_is \(command.name); and __curlew_first' -a \(list(command.first))")
            }
            if command.word == .item { lines.append("\(condition) -a '(__curlew_item)'") }
            for option in command.options {
                let names = option.names.map { $0.hasBytePrefix("--") ? "-l \($0.dropFirstScalars(2))" : "-s '\($0.dropFirstScalars())'" }
                let summary = option.summary.isEmpty ? "" : " -d \(quoted(option.summary))"
                lines.append("\(condition) \(names.joined(separator: " "))\(option.value.map(fishValue) ?? "")\(summary)")
            }
        }
        let valued = table.commands.map { command in
            "        case \(command.name)\n            set valued \(list(command.options.filter { $0.value != nil }.flatMap(\.names)))\n"
        }
        return #"""
            # Completion of curlew for fish.

            # Prints the command of the line, main for a request, and then its words before the current one.
            function __curlew_words
                set -l words (commandline -opc)[2..-1]
                switch "$words[1]"
            \#(table.subcommands.map { fishCase($0) }.joined())        case '*'
                        echo main
                end
                string join \n -- $words
            end

            function __curlew_begins
                test (count (commandline -opc)) = 1
            end

            function __curlew_is # COMMAND
                set -l words (__curlew_words)
                test $words[1] = $argv[1]
            end

            # Whether each word before the current one is an option, or the value of one.
            function __curlew_first
                set -l words (__curlew_words)
                set -l valued
                switch $words[1]
            \#(valued.joined())    end
                set -l is_value 0
                for word in $words[2..-1]
                    if test $is_value = 1
                        set is_value 0
                    else if string match -q -- '-?*' $word
                        contains -- $word (string split ' ' -- $valued)
                        and set is_value 1
                    else
                        return 1
                    end
                end
                return 0
            end

            # Names of files behind an at sign.
            function __curlew_item
                set -l token (commandline -ct)
                string match -q -- '*@*' $token
                or return
                set -l name (string replace -r -- '@[^@]*$' '@' $token)
                for path in (__fish_complete_path (string replace -r -- '^.*@' '' $token))
                    echo $name$path
                end
            end

            function __curlew_folder
                __fish_complete_directories (commandline -ct | string replace -r -- '^--[^=]*=' '')
            end

            complete -c curlew -f
            \#(lines.joined(separator: "\n"))

            """#
    }

    private static func fishCase(_ command: CompletionTable.Command) -> String {
        "        case \(command.names.joined(separator: " "))\n            echo \(command.name)\n            set -e words[1]\n"
    }

    private static func fishValue(_ value: CompletionTable.Value) -> String {
        switch value {
        case .text: " -x"
        case .choices(let choices): " -x -a \(list(choices))"
        case .file: " -r -F"
        case .folder: " -x -a '(__curlew_folder)'"
        case .item: " -x -a '(__curlew_item)'"
        }
    }
}

extension CompletionTable {
    /// The words that begin a subcommand.
    fileprivate var names: [String] { subcommands.flatMap(\.names) }
}

extension CompletionTable.Command {
    /// The pattern of its names in bash and zsh.
    fileprivate var pattern: String { names.isEmpty ? name : names.joined(separator: " | ") }
}
